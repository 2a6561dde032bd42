"""JTT: just train twice (Liu et al. 2021).

Algorithm 1: train a net by ERM for T epochs. The error set E holds the training examples that this
net gets wrong. Train a new net by ERM on the training set, in which every example of E is repeated.

Differs from the paper:
- ``upweight`` copies are added, so that an example of E occurs 1 + λ_up times, as in the released
  code; the paper says λ_up times.

Differs from the released code:
- E comes from an evaluation pass after T epochs (as in the paper) instead of the predictions made
  during epoch T; ``record=online`` uses the latter, and shares stage 1 with UMIX;
- one run instead of two programs that exchange a table; an empty E is reported.
"""

from typing import Annotated, ClassVar, Literal, final

from pydantic import Field

from umix.data.samplers import Repeated
from umix.methods.method import Method
from umix.methods.parts.weight_warnings import warn_about
from umix.nets.net import Net
from umix.settings import among
from umix.training.history import HeldOutUncertainty
from umix.training.objective import MeanRisk
from umix.training.stage import ErmStage
from umix.training.trainer import Trainer


@final
class JTT(Method):
    """Just train twice: examples that a first ERM net gets wrong are repeated for the second."""

    name: ClassVar[str] = "jtt"
    paper: ClassVar[str] = (
        "Liu et al., Just train twice: Improving group robustness without training group information, ICML 2021"
    )
    takes_weights: ClassVar[bool] = True
    stages: ClassVar[tuple[str, ...]] = ("trajectory",)

    identification_epochs: Annotated[int, among(1, 2, 3, 5, 10)] = Field(
        2, ge=1, description="epochs of the first net (the paper's T)"
    )
    upweight: Annotated[int, among(2, 5, 10, 20, 50)] = Field(
        20, ge=0, description="copies added of each example in the error set (the paper's λ_up)"
    )
    record: Literal["online", "epoch_end"] = Field(
        "epoch_end", description="wrong in a clean pass after the last epoch, or in its training pass"
    )

    def erm_stages(self, epochs: int) -> tuple[ErmStage, ...]:
        return (ErmStage("trajectory", self.identification_epochs, record=self.record),)

    def train(self, trainer: Trainer) -> Net:
        (stage,) = self.erm_stages(trainer.settings.epochs)
        trajectory, last = trainer.trajectory(stage), self.identification_epochs - 1
        wrong = trajectory.uncertainty(start=last, length=1)
        held_out = HeldOutUncertainty(
            trajectory.val_uncertainty(start=last, length=1), trajectory.test_uncertainty(start=last, length=1)
        )
        weight = 1 + self.upweight * wrong
        trainer.keep(uncertainty=wrong, weight=weight)
        if wrong.any():
            warn_about(weight, trainer, u=wrong)
        else:
            trainer.warn(
                f"No training example was wrong in epoch {self.identification_epochs}: the error set is empty and JTT trains as "
                "ERM; try fewer identification_epochs."
            )
        return trainer.fit(MeanRisk(), sampler=Repeated(weight.long()), uncertainty=held_out)
