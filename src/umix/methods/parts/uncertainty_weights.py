"""Importance weights from uncertainty (UMIX Algorithm 2), for UMIX and methods that build on it."""

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, final

import torch
from pydantic import Field
from torch import Tensor

from umix.core.weight_choice import UNCERTAIN
from umix.core.weights import uncertainty
from umix.data.samplers import Sampler, Shuffled
from umix.errors import UserError
from umix.methods.method import Method
from umix.methods.parts.contest import Candidate, contest, limit_cost
from umix.methods.parts.left_open import keep_verdict
from umix.methods.parts.weight_family import POOLS, Pool, Weighting, weightings
from umix.methods.parts.weight_warnings import warn_about
from umix.nets.fleet import candidate_cost
from umix.settings import among
from umix.training.history import HeldOutUncertainty
from umix.training.objective import Objective
from umix.training.stage import ErmStage
from umix.training.stage_key import recorded_splits
from umix.training.trainer import Trainer
from umix.training.trajectory import Trajectory

Eta = Annotated[float, Field(ge=0)] | Literal["auto"]
Length = Annotated[int, Field(ge=1)] | Literal["auto"]
LENGTH = "epochs in the window, or models in the ensemble (the paper's T); auto: chosen on validation"


class UncertaintyWeights(Method, abc.ABC):
    """A method that weighs training examples by eta·u + c, where u is how often ERM gets them wrong.

    What is ``auto`` is chosen by a contest of the weights in ``weight_family``.
    """

    takes_weights: ClassVar[bool] = True
    stages: ClassVar[tuple[str, ...]] = ("trajectory", "ensemble")
    absent_by_default: ClassVar[tuple[str, ...]] = ("power",)

    eta: Eta  # every method gives its own default and search range
    c: float = Field(1.0, gt=0, description="weight of an example that was never wrong")
    normalize: bool = Field(True, description="scale the weights to mean 1; the paper applies them as they are")
    pool: Pool | Literal["auto"] = Field(
        "example",
        description="what an example weighs by: its own uncertainty, the mean of its class, its own times class balance, or the "
        "inverse size of its cell, class and right or wrong",
    )
    power: float = Field(
        1.0, ge=0, le=1, description="with pool=cell: weights are the size of the cell to minus this power"
    )
    budget: float | None = Field(
        None,
        ge=0,
        le=1,
        description="with auto: how far validation accuracy may fall below ERM's; none: 0.1 where no groups decide, else any",
    )
    uncertainty: Literal["trajectory", "ensemble"] = Field(
        "trajectory",
        description="share of epochs of one ERM fit, or of independent ERM fits, that get an example wrong",
    )
    start: int = Field(
        0, ge=0, description="first epoch of the window, counted from 0 (the paper's T_s); an ensemble has none"
    )
    length: Annotated[Length, among(5, 10, 20)] = Field(10, description=LENGTH)
    record: Literal["online", "epoch_end"] = Field(
        "online", description="predictions of the training pass, or of a clean pass after it; an ensemble's are clean"
    )

    @property
    def is_auto(self) -> bool:
        """Whether something is left to a contest."""
        return "auto" in (self.eta, self.pool, self.length)

    def key_values(self) -> dict[str, Any]:
        """What identifies a run; a budget matters only to a contest, and contests have changed since their first version."""
        values = super().key_values()
        return values | ({"contest": 2} if self.is_auto else {"budget": 0.05})

    def erm_stages(self, epochs: int) -> tuple[ErmStage, ...]:
        if self.uncertainty == "ensemble":
            if self.length == "auto":
                raise UserError("length must be a number of models where uncertainty=ensemble, got 'auto'.")
            return ensemble_members(self.length, epochs)
        recorded = max(epochs, self.start + 1) if self.length == "auto" else self.start + self.length
        return (ErmStage("trajectory", recorded, record=self.record),)

    def measure(self, trainer: Trainer) -> "Measured":
        """The uncertainty of all examples, measured by ERM fits (eq. 6)."""
        stages = self.erm_stages(trainer.settings.epochs)
        if self.uncertainty == "ensemble":
            return ensemble_uncertainty(trainer, stages)
        trajectory = trainer.trajectory(stages[0])
        windows = tuple(range(1, stages[0].epochs - self.start + 1)) if self.length == "auto" else (self.length,)
        return Measured.of(trajectory, start=self.start, lengths=windows)

    def candidates(
        self,
        measured: "Measured",
        trainer: Trainer,
        objective: Callable[[Tensor], Objective],
        sampler: Sampler | None = None,
    ) -> list[Candidate]:
        """The weights that the settings leave open, as candidates of a contest, or the only ones."""
        found = weightings(
            pools=POOLS if self.pool == "auto" else (self.pool,),
            etas=None if self.eta == "auto" else (self.eta,),
            lengths=None if self.length == "auto" else (self.length,),
            epochs=measured.longest,
            power=self.power,
            cost=candidate_cost(trainer.fresh_net()),
        )
        made = []
        for weighting in found:
            w = self.weigh(measured, weighting, trainer)
            settings = {
                f"{self.name}.{key}": value for key, value in {**weighting.settings(), "start": self.start}.items()
            }
            name = f"{self.name} {weighting}"
            made.append(Candidate(name, self.name, settings, objective(w), sampler or Shuffled(), w, weighting))
        return made

    def weigh(self, measured: "Measured", weighting: Weighting, trainer: Trainer) -> Tensor:
        """The weight of every training example, [n], on the trainer's device (eq. 7)."""
        train, u = trainer.task.splits["train"], measured.train(weighting.length)
        return weighting.weights(u, train.y, c=self.c, by=train.weight, normalize=self.normalize).to(trainer.device)

    def weigh_examples(
        self, trainer: Trainer, objective: Callable[[Tensor], Objective], sampler: Sampler | None = None
    ) -> "Weighed":
        """The weights of all training examples, which are also saved with the run (Algorithm 2).

        ``objective`` is what the method minimises with given weights; a contest of several weights needs it.
        """
        measured = self.measure(trainer)
        candidates = self.candidates(measured, trainer, objective, sampler)
        chosen = candidates[0] if len(candidates) == 1 else self._choose(candidates, measured, trainer)
        weighting = chosen.weighting
        if weighting is None or chosen.weights is None:
            raise ValueError(f"A candidate of {self.name} must have weights, got {chosen.name}.")
        u = measured.train(weighting.length)
        trainer.keep(uncertainty=u, weight=chosen.weights)
        warn_about(chosen.weights.cpu(), trainer, u=u)
        return Weighed(chosen.weights, measured.held_out(weighting.length))

    def _choose(self, candidates: Sequence[Candidate], measured: "Measured", trainer: Trainer) -> Candidate:
        limit_cost(trainer, measured.best_val, self.budget)
        verdict = contest(
            trainer,
            candidates,
            uncertain=measured.uncertain,
            content=self.model_dump_json(exclude={"eta", "pool", "length", "power", "budget"}),
        )
        return keep_verdict(self, trainer, verdict)


@final
@dataclass(frozen=True, eq=False)
class Weighed:
    """The weights of the training examples, [n], on the trainer's device, and the uncertainty of the held-out examples."""

    weights: Tensor
    held_out: HeldOutUncertainty


@final
@dataclass(frozen=True, eq=False)
class Measured:
    """The first stage's uncertainty of all examples for every length of the window, and its best validation accuracy.

    ``parts`` holds the uncertainty of train, val and, where the task has no groups, test, by the length of the window.
    """

    parts: dict[int, dict[str, Tensor]]
    best_val: float

    @classmethod
    def of(cls, trajectory: Trajectory, *, start: int, lengths: Sequence[int]) -> "Measured":
        """What ``trajectory`` says for windows of these ``lengths``."""
        parts: dict[int, dict[str, Tensor]] = {}
        for length in lengths:
            test = trajectory.test_uncertainty(start=start, length=length)
            parts[length] = {
                "train": trajectory.uncertainty(start=start, length=length),
                "val": trajectory.val_uncertainty(start=start, length=length),
                **({} if test is None else {"test": test}),
            }
        return cls(parts, max(trajectory.val_rates()))

    @property
    def longest(self) -> int:
        """The length of the longest window."""
        return max(self.parts)

    @property
    def uncertain(self) -> Tensor:
        """Which validation examples were wrong in at least half of the longest window, bool [n_val]."""
        return self.parts[self.longest]["val"] >= UNCERTAIN

    def train(self, length: int) -> Tensor:
        """The uncertainty of the training examples, [n]."""
        return self.parts[length]["train"]

    def held_out(self, length: int) -> HeldOutUncertainty:
        """The uncertainty of the other examples; that of test is for reports, and None where the task has groups."""
        return HeldOutUncertainty(self.parts[length]["val"], self.parts[length].get("test"))


def ensemble_members(size: int, epochs: int) -> tuple[ErmStage, ...]:
    """The stages ``member-0``, ``member-1``, … of an ensemble of ``size`` ERM models, all with the settings of ``ensemble``."""
    return tuple(ErmStage(f"member-{member}", epochs, settings="ensemble") for member in range(size))


def ensemble_uncertainty(trainer: Trainer, members: Sequence[ErmStage]) -> Measured:
    """Share of the ``members`` that misclassify each example (UMIX, appendix on the simulated data set).

    Every member is an ERM model with an initialisation and an order of its own.
    """
    correct: dict[str, list[Tensor]] = {split: [] for split in ("train", *recorded_splits(trainer.task))}
    for member in members:
        for split, hits in trainer.reference_hits(member, tuple(correct)).items():
            correct[split].append(hits)
    u = {
        split: uncertainty(torch.stack(rows, dim=1), start=0, length=len(members)).cpu()
        for split, rows in correct.items()
    }
    return Measured({len(members): u}, 1 - float(u["val"].mean()))
