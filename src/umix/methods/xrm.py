"""XRM: cross-risk minimisation discovers environments where twins fail (Pezeshki et al. 2024).

Two nets of the same architecture, the twins, are trained at once. A fair coin gives every training example to one of them. A
twin's loss is the sum over classes of the mean cross-entropy of its examples of that class, on the current labels. After every
batch the other twin, which was not trained on the example, may change its label: with probability (p − 1/C)·C/(C − 1) the current
label becomes the held-out prediction, whose probability is p. So each twin is led to repeat the other's mistakes, and what both
rely on is what is spurious. Environment 1 has the examples whose own label one of the twins does not predict, environment 0 the
others. Training: GroupDRO with label×environment cells as groups. Group labels are not used.

The twins' settings are chosen without groups too: of ``tries`` the one that changed the most labels; a try in which a class lacks
one of the environments counts as 0. The first has the settings of the final fit, the others draw learning rate and batch size
around them. ``then=umix`` takes UMIX in place of GroupDRO, with the held-out twin's error rates of the cells. These weights are
balanced over classes, because the twins are: they take many examples of a large class for a small one, and to weigh only these
would push the net to the large class again (adult, worst group of validation: 39 % without, 71 % with balance).

Differs from the paper:
- the class means of a batch are taken for each twin by itself, so that without changed labels the twins are two separate fits;
- the epoch of the final fit is selected as in every run, not by the worst inferred group of validation;
- fewer tries, around the settings of the final fit; weight decay is not drawn.

Differs from the released code:
- the final fit has batches that hold the cells in equal parts; the released code shuffles rows, which is ``batches=shuffled``;
- as the class means are taken for each twin by itself, the gradient of a twin is about twice that of the released code, which takes
  them over the examples of both;
- whether a class lacks an environment is looked up in the training split only, there in validation too;
- the optimiser and its schedule are those of the final fit, where the released code restarts its warm-up;
- twins are initialised as all nets are; for images the released code trains linear layers that begin at 0;
- as above.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, final

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from umix.core.losses import cross_entropy
from umix.core.risks import group_risks
from umix.core.streams import stream
from umix.data.batch import Batch
from umix.errors import UserError
from umix.methods.parts.inferred_groups import InferredGroups, InfersGroups
from umix.models.model import Model
from umix.settings import among
from umix.training.context import Context
from umix.training.objective import Objective, State
from umix.training.stage import SideStage, side_fit
from umix.training.train_result import Notes

_TWINS = "twins"
_DIVERGED = -1.0  # in place of the share of changed labels: less than any


def flip_probability(p: Tensor, *, n_classes: int) -> Tensor:
    """(p − 1/C)·C/(C − 1): with which probability a prediction of probability ``p`` takes the place of the label; like ``p``.

    It is 0 for a prediction at chance, 1 for a certain one, and 0 if there is one class only.

    >>> flip_probability(torch.tensor([0.5, 0.9, 1.0]), n_classes=2)
    tensor([0.0000, 0.8000, 1.0000])
    """
    if n_classes < 2:
        return torch.zeros_like(p)
    return ((p - 1 / n_classes) * (n_classes / (n_classes - 1))).clamp(0, 1)


def flipped(label: Tensor, held_out: Tensor, draws: Tensor, *, strength: float = 1.0) -> Tensor:
    """The labels [n] after those of the examples that are drawn have become the held-out twin's predictions.

    ``held_out`` [n, classes] are its logits, ``draws`` [n] uniform numbers in [0, 1). Probabilities are multiplied by ``strength``.

    >>> flipped(torch.tensor([0, 0]), torch.tensor([[0.0, 9.0], [0.0, 0.1]]), torch.tensor([0.5, 0.5]))
    tensor([1, 0])
    """
    p, prediction = held_out.softmax(1).max(1)
    flips = draws < strength * flip_probability(p, n_classes=held_out.shape[1])
    return torch.where(flips, prediction, label)


def twins_risk(held_in: Tensor, label: Tensor, first: Tensor) -> Tensor:
    """The sum over both twins and all classes of the mean loss of the twin's examples of that class, a scalar.

    ``held_in`` [n, classes] are the logits of the twin that holds the example: the first where ``first`` [n] is true.
    """
    n_classes = held_in.shape[1]
    return group_risks(cross_entropy(held_in, label), n_classes * first.long() + label, n_groups=2 * n_classes).sum()


def both_environments(environment: Tensor, y: Tensor) -> bool:
    """Whether every class of ``y`` [n] has examples in the environments 0 and 1.

    >>> both_environments(torch.tensor([0, 1, 0, 0]), torch.tensor([0, 0, 2, 2]))
    False
    """
    return len(torch.unique(2 * y + environment)) == 2 * len(torch.unique(y))


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class TwinsRisk(Objective):
    """The class-balanced losses of the net and its companion on the examples that each of them holds.

    ``y`` [n] are the labels of all training examples. The state ``label`` [n] has the current ones. ``first`` [n] says which
    examples the net holds. Probabilities of changing a label are multiplied by ``strength``.
    """

    y: Tensor
    first: Tensor
    strength: float = 1.0

    def init(self, n_groups: int) -> State:
        return {"label": self.y.clone()}

    def risk(self, net: Model, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        if net.companion is None:
            raise ValueError("TwinsRisk trains a companion beside the net: fit it with companion=True.")
        one, other = net(batch.x), net.companion(batch.x)
        first, label = self.first.index_select(0, batch.index), state["label"].index_select(0, batch.index)
        risk = twins_risk(torch.where(first[:, None], one, other), label, first)
        held_out = torch.where(first[:, None], other, one).detach().float()
        draws = torch.from_numpy(rng.random(len(label))).to(label.device, torch.float32, non_blocking=True)
        label = flipped(label, held_out, draws, strength=self.strength)
        return risk, {"label": state["label"].index_copy(0, batch.index, label)}


@final
@dataclass(frozen=True, eq=False)
class _Try:
    """What twins of some settings have found: who is wrong about which label, and how many labels they have changed."""

    settings: dict[str, Any]
    environment: Tensor  # int64 [n]
    wrong: Tensor  # bool [n], of the twin that does not hold the example
    changed: float  # share of the labels; 0 if some class lacks an environment

    @property
    def words(self) -> str:
        return ", ".join(f"{name} {value:.3g}" for name, value in self.settings.items())


@final
class XRM(InfersGroups):
    """Cross-risk minimisation: environments are where one of two nets, each trained on a half, fails; then GroupDRO."""

    name: ClassVar[str] = "xrm"
    paper: ClassVar[str] = "Pezeshki et al., Discovering environments with XRM, ICML 2024"
    stages: ClassVar[tuple[str, ...]] = (_TWINS,)

    twin_epochs: int | None = Field(
        None, ge=1, description="epochs of the twins; none: those of the final fit; twins.epochs overrides it"
    )
    tries: Annotated[int, among(1, 2, 4)] = Field(
        2, ge=1, description="settings of the twins that are tried; the one that changes the most labels is taken"
    )
    class_balance: bool = Field(
        True, description="with then=umix: weights are also divided by the size of the class, as the twins' losses are"
    )
    strength: float = Field(1.0, ge=0, le=1, description="times the probability of changing a label; 0 changes none")

    def infer(self, context: Context) -> InferredGroups:
        y = context.splits["train"].y
        tries = [self._try(number, context) for number in range(self.tries)]
        best = max(tries, key=lambda one: one.changed)
        if best.changed == _DIVERGED:
            raise UserError("The logits of the twins must be finite numbers, but they are not; try a smaller twins.lr.")
        choices: dict[str, Any] = {}
        if len(tries) > 1:
            words = f"{best.words} of {len(tries)} tries changed the most labels, {best.changed:.1%}"
            if best.changed == 0:
                words = f"none of {len(tries)} tries changed labels with both environments in every class"
            choices[_TWINS] = {
                "words": f"twins: {words}",
                "tries": [{**one.settings, "changed": one.changed} for one in tries],
            }
        warnings: tuple[str, ...] = ()
        if alone := [
            name for c, name in enumerate(context.task.classes) if len(best.environment[y == c].unique()) == 1
        ]:
            warnings = (
                f"All examples of {', '.join(alone)} are in one of the two inferred environments and are one group; try other "
                "twins.lr or twins.epochs, or more tries.",
            )
        notes = Notes({"environment": best.environment}, choices, warnings)
        return InferredGroups(2 * y + best.environment, 2 * context.task.n_classes, best.wrong, notes)

    def _try(self, number: int, context: Context) -> _Try:
        """Twins of the settings with this number, trained and asked for every example's label."""
        y, name = context.splits["train"].y, f"{_TWINS}-{number}" if number else _TWINS
        first = torch.from_numpy(stream(context.seed, name, "halves").random(len(y)) < 0.5).to(y.device)
        objective = TwinsRisk(y=y, first=first, strength=self.strength)
        stage = SideStage(
            name,
            self.twin_epochs or context.settings.epochs,
            content=f"twins strength={self.strength}",
            settings=_TWINS,
            changes=_drawn(context, name) if number else {},
        )
        net, state = side_fit(context, stage, objective, companion=True)
        if net.companion is None:
            raise ValueError("Twins need a companion.")
        used = stage.fit_settings(context)
        both = [context.logits(net, "train"), context.logits(net.companion, "train")]
        wrong_one, wrong_other = (logits.argmax(1) != y for logits in both)
        environment = (wrong_one | wrong_other).long()
        changed = float((state["label"] != y).cpu().double().mean()) if both_environments(environment, y) else 0.0
        return _Try(
            {"lr": used.lr, "batch_size": used.batch_size},
            environment,
            torch.where(first, wrong_other, wrong_one),
            changed if all(bool(logits.isfinite().all()) for logits in both) else _DIVERGED,
        )


def _drawn(context: Context, name: str) -> dict[str, Any]:
    """A learning rate of a tenth to ten times that of the final fit, and a batch size of a half to the double, both drawn."""
    rng = stream(context.seed, name, "settings")
    return {
        "lr": context.settings.lr * 10 ** rng.uniform(-1, 1),
        "batch_size": max(1, round(context.settings.batch_size * 2 ** rng.uniform(-1, 1))),
    }
