"""EIIL: environment inference for invariant learning (Creager et al. 2021).

Stage 1: train a reference model by ERM. Environment inference: split the training examples into the
two environments over which the reference is least invariant, by gradient ascent on its IRMv1
penalty over soft assignments. The maximum of this penalty is known (see ``infer_environments``).
With two classes, environment 1 has the examples that the reference gets wrong. Stage 2: GroupDRO
with environment×label cells as groups, as in the paper's Waterbirds and CivilComments experiments.
Group labels are not used. With ``then=umix`` stage 2 is UMIX with the error rates of these cells.

Differs from the paper:
- nothing; the paper leaves the training of the reference to the user, here ``reference_epochs``.

Differs from the released code:
- the penalty is scaled to 1; in the released code its scale falls with the number of examples,
  until Adam's ε keeps examples with a small derivative in the environment of their random start;
- environment 1 is the one where the reference fails; in the released code the numbers 0 and 1
  depend on chance;
- cells without examples do not count as groups.
"""

from typing import Annotated, ClassVar, final

from pydantic import Field

from umix.core.environments import infer_environments
from umix.core.streams import stream
from umix.methods.parts.inferred_groups import InferredGroups, InfersGroups
from umix.settings import among
from umix.training.context import Context
from umix.training.evaluate import reference_logits
from umix.training.stage import ErmStage
from umix.training.train_result import Notes


@final
class EIIL(InfersGroups):
    """Environment inference, then GroupDRO: the groups are found where an ERM model fails, none are given."""

    name: ClassVar[str] = "eiil"
    paper: ClassVar[str] = "Creager et al., Environment inference for invariant learning, ICML 2021"
    stages: ClassVar[tuple[str, ...]] = ("reference",)

    reference_epochs: Annotated[int, among(1, 2, 5, 10)] = Field(
        1, ge=1, description="epochs of the reference model; reference.epochs overrides it"
    )
    inference_steps: int = Field(100, ge=1, description="steps of Adam that find the environments")
    inference_lr: float = Field(0.1, gt=0, description="learning rate of these steps; the product should be some 10")

    def erm_stages(self, epochs: int) -> tuple[ErmStage, ...]:
        return (ErmStage("reference", self.reference_epochs),)

    def infer(self, context: Context) -> InferredGroups:
        y = context.splits["train"].y
        (stage,) = self.erm_stages(context.settings.epochs)
        logits = reference_logits(context, stage)
        rng = stream(context.seed, "reference", "environments")
        environment = infer_environments(logits, y, steps=self.inference_steps, lr=self.inference_lr, rng=rng)
        warnings: tuple[str, ...] = ()
        if (environment == environment[0]).all():
            warnings = (
                "One of the two inferred environments is empty, so the groups are the classes alone: the reference gets all "
                "training examples right, or none; try another reference_epochs.",
            )
        notes = Notes({"environment": environment}, warnings=warnings)
        return InferredGroups(2 * y + environment, 2 * context.task.n_classes, logits.argmax(1) != y, notes)
