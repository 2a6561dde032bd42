"""JTT: just train twice (Liu et al. 2021).

Algorithm 1: train a net by ERM for T epochs. The error set E holds the training examples that this
net gets wrong. Train a new net by ERM on the training set, in which every example of E is repeated.

Differs from the paper:
- ``upweight`` copies are added, so that an example of E occurs 1 + λ_up times, as in the released
  code; the paper says λ_up times;
- T and λ_up may be ``auto``: they are chosen on validation. λ_up = 0, which is ERM, is one of the
  candidates. Candidates are compared with weights (1 + λ_up·wrong) / mean in shuffled batches, which
  stand in for copies: nets that differ in weights only can be trained together. The net of the
  chosen settings is trained with copies.

Differs from the released code:
- E comes from an evaluation pass after T epochs (as in the paper) instead of the predictions made
  during epoch T; ``record=online`` uses the latter, and shares stage 1 with UMIX;
- one run instead of two programs that exchange a table; an empty E is reported.
"""

from typing import Annotated, ClassVar, Literal, final

from pydantic import Field
from torch import Tensor

from umix.core.weights import normalized
from umix.data.samplers import Repeated
from umix.methods.method import WEIGHTS_ONLY, Method, Needs
from umix.methods.parts.uncertainty_weights import weight_warnings
from umix.models.stacked import candidate_cost
from umix.selection.select import Auto, Candidate, resolve_auto
from umix.settings import among
from umix.training.batch_risk import BatchRisk
from umix.training.context import Context
from umix.training.history import HeldOutUncertainty
from umix.training.objective import MeanRisk
from umix.training.stage import ErmStage
from umix.training.train_result import Notes, TrainResult
from umix.training.trajectory import Trajectory

Epochs = Annotated[int, Field(ge=1)] | Auto
Upweight = Annotated[int, Field(ge=0)] | Auto
_EPOCHS, _UPWEIGHTS = (1, 2, 5), (1, 3, 10, 30, 100)  # what auto tries


@final
class JTT(Method):
    """Just train twice: examples that a first ERM net gets wrong are repeated for the second."""

    name: ClassVar[str] = "jtt"
    paper: ClassVar[str] = (
        "Liu et al., Just train twice: Improving group robustness without training group information, ICML 2021"
    )
    takes_weights: ClassVar[bool] = True
    needs: ClassVar[Needs] = WEIGHTS_ONLY
    stages: ClassVar[tuple[str, ...]] = ("trajectory",)

    identification_epochs: Annotated[Epochs, among(1, 2, 3, 5, 10)] = Field(
        2, description="epochs of the first net (the paper's T); auto tries some on validation"
    )
    upweight: Annotated[Upweight, among(2, 5, 10, 20, 50)] = Field(
        20,
        description="copies added of each example in the error set (the paper's λ_up); auto tries some on validation, 0 too",
    )
    record: Literal["online", "epoch_end"] = Field(
        "epoch_end", description="wrong in a clean pass after the last epoch, or in its training pass"
    )

    def erm_stages(self, epochs: int) -> tuple[ErmStage, ...]:
        epochs_set = self.identification_epochs
        longest = max(tried for tried in _EPOCHS if tried <= max(1, epochs)) if epochs_set == "auto" else epochs_set
        return (ErmStage("trajectory", longest, record=self.record),)

    def train(self, context: Context) -> TrainResult:
        (stage,) = self.erm_stages(context.settings.epochs)
        trajectory = context.trajectory(stage)
        (epochs, upweight), context, notes = self._resolved(trajectory, context, longest=stage.epochs)
        wrong = _wrong(trajectory, epochs)
        held_out = HeldOutUncertainty(
            trajectory.val_uncertainty(start=epochs - 1, length=1),
            trajectory.test_uncertainty(start=epochs - 1, length=1),
        )
        weight = 1 + upweight * wrong
        if wrong.any():
            warnings = weight_warnings(weight, u=wrong)
        else:
            warnings = (
                f"No training example was wrong in epoch {epochs}: the error set is empty and JTT trains as ERM; try fewer "
                "identification_epochs.",
            )
        notes += Notes({"uncertainty": wrong, "weight": weight}, warnings=warnings)
        return context.fit(MeanRisk(), sampler=Repeated(weight.long()), uncertainty=held_out).after(notes)

    def _resolved(
        self, trajectory: Trajectory, context: Context, *, longest: int
    ) -> tuple[tuple[int, int], Context, Notes]:
        """The numbers of epochs and of copies, as they are set or as validation chooses them; the context and notes of that."""
        if self.identification_epochs != "auto" and self.upweight != "auto":
            return (self.identification_epochs, self.upweight), context, Notes()
        tried = self._tried(longest, many=candidate_cost(context.fresh_net()) == "none")
        candidates = [self._candidate(trajectory, context, *values) for values in tried]
        selection = resolve_auto(self, context, candidates, erm=trajectory)
        return tried[candidates.index(selection.winner)], selection.context, selection.notes

    def _tried(self, longest: int, *, many: bool) -> list[tuple[int, int]]:
        """The pairs of epochs and copies to choose from; ``many`` where a candidate is cheap. The first is ERM, if it may be."""
        epochs_set = self.identification_epochs
        all_epochs = (
            [tried for tried in (_EPOCHS if many else (1, 5)) if tried <= longest]
            if epochs_set == "auto"
            else [epochs_set]
        )
        if self.upweight != "auto":
            return [(epochs, self.upweight) for epochs in all_epochs]
        upweights = _UPWEIGHTS if many else _UPWEIGHTS[:4]
        return [(all_epochs[0], 0), *((epochs, upweight) for epochs in all_epochs for upweight in upweights)]

    def _candidate(self, trajectory: Trajectory, context: Context, epochs: int, upweight: int) -> Candidate:
        weight = 1 + upweight * _wrong(trajectory, epochs)
        weight = normalized(weight, sample_weight=context.task.splits["train"].weight).to(context.device)
        settings = {"jtt.identification_epochs": epochs, "jtt.upweight": upweight}
        name = f"jtt identification_epochs={epochs} upweight={upweight}"
        return Candidate(name, self.name, settings, BatchRisk(weights=weight), weights=weight)


def _wrong(trajectory: Trajectory, epochs: int) -> Tensor:
    """Whether each training example is in the error set after so many epochs: 1 or 0, [n]."""
    return trajectory.uncertainty(start=epochs - 1, length=1)
