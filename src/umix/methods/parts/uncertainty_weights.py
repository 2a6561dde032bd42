"""Importance weights from uncertainty (UMIX Algorithm 2), for UMIX and methods that build on it.

The paper's weight is η·u + c with the example's own uncertainty u. Where labels are noisy, the uncertainty of single examples is
mostly noise, but that of a class, or of the examples of a class that ERM gets wrong, is not. Where classes are of very different
size, balancing them is half of the work. So there are five kinds of weights, and no kind is best on all data:

- ``example``: η·u + c;
- ``class``: η·ū + c, where ū is the mean of u in the example's class;
- ``neighbours``: η·ū + c, where ū is the mean of u over the nearest examples of the same class (``core.neighbours``);
- ``balance``: (η·u + c) / n_y, where n_y is the size of the class; with η = 0 plain class balance;
- ``cell``: n^(−power), where n is the size of the example's cell: its class, and whether ERM was wrong in half of the window.
"""

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, final

import torch
from pydantic import Field
from torch import Tensor

from umix.core.neighbours import class_neighbours, neighbour_means
from umix.core.streams import stream
from umix.core.weights import (
    cells,
    class_means,
    effective_sample_size,
    importance_weights,
    inverse_frequency,
    normalized,
    uncertainty,
)
from umix.data.samplers import Sampler, Shuffled
from umix.errors import UserError
from umix.methods.method import Method
from umix.methods.parts.example_vectors import example_vectors
from umix.models.stacked import candidate_cost
from umix.selection.select import Candidate, Selection, limited_cost, select
from umix.settings import among
from umix.training.context import Context
from umix.training.history import HeldOutUncertainty
from umix.training.objective import Objective
from umix.training.stage import ErmStage, recorded_splits
from umix.training.train_result import Notes
from umix.training.trajectory import Trajectory

Eta = Annotated[float, Field(ge=0)] | Literal["auto"]
Length = Annotated[int, Field(ge=1)] | Literal["auto"]
LENGTH = "epochs in the window, or models in the ensemble (the paper's T); auto: chosen on validation"


Pool = Literal["example", "class", "neighbours", "balance", "cell"]
POOLS: tuple[Pool, ...] = ("example", "class", "neighbours", "balance", "cell")
AUTO_POOLS = tuple(pool for pool in POOLS if pool != "neighbours")  # those that pool=auto tries

_ETAS = (1.0, 3.0, 10.0, 30.0, 100.0)


@final
@dataclass(frozen=True)
class Weighting:
    """One way to weigh examples: settings of a UMIX run."""

    pool: Pool
    eta: float
    length: int
    power: float = 1.0

    def settings(self) -> dict[str, Any]:
        """These settings by name, without those that this kind of weights does not use."""
        if self.pool == "cell":
            return {"pool": self.pool, "power": self.power, "length": self.length}
        return {"pool": self.pool, "eta": self.eta, "length": self.length}

    def __str__(self) -> str:
        return " ".join(
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in self.settings().items()
        )

    def weights(
        self,
        u: Tensor,
        y: Tensor,
        *,
        c: float,
        neighbours: Tensor | None = None,
        sample_weight: Tensor | None = None,
        normalize: bool = True,
    ) -> Tensor:
        """The weight of every training example, [n], from its uncertainty ``u`` and its class ``y``.

        ``pool=neighbours`` needs the ``neighbours`` [n, k]. With ``sample_weight`` [n], an example counts as that many copies.
        """
        if self.pool == "cell":
            return inverse_frequency(cells(u, y), power=self.power, sample_weight=sample_weight)
        if self.pool == "class":
            u = class_means(u, y, sample_weight=sample_weight)
        elif self.pool == "neighbours":
            if neighbours is None:
                raise ValueError("Weights with pool='neighbours' must be given the neighbours of every example.")
            u = neighbour_means(u, neighbours, sample_weight=sample_weight)
        w = importance_weights(u, eta=self.eta, c=c)
        if self.pool == "balance":
            w = w * inverse_frequency(y, sample_weight=sample_weight)
        return normalized(w, sample_weight=sample_weight) if normalize else w


#: How much a candidate costs: nothing (a linear head in a stack), a share of a small fit, or of a large one.
Cost = Literal["none", "small", "large"]
_BALANCED_ETAS: Mapping[Cost, tuple[float, ...]] = {"none": (0.0, 3.0, 10.0), "small": (0.0, 3.0), "large": (0.0,)}
_EXAMPLE_ETAS: Mapping[Cost, tuple[float, ...]] = {"none": _ETAS, "small": _ETAS[:4], "large": (3.0, 30.0)}
_CLASS_ETAS: Mapping[Cost, tuple[float, ...]] = {"none": (10.0, 100.0), "small": (10.0, 100.0), "large": (10.0,)}
_NEIGHBOUR_ETAS: Mapping[Cost, tuple[float, ...]] = {
    "none": (10.0, 30.0, 100.0),
    "small": (10.0, 100.0),
    "large": (10.0,),
}
_POWERS: Mapping[Cost, tuple[float, ...]] = {"none": (0.5, 1.0), "small": (0.5, 1.0), "large": (0.5,)}


def weightings(
    *,
    pools: Sequence[Pool],
    etas: Sequence[float] | None,
    lengths: Sequence[int] | None,
    epochs: int,
    power: float,
    cost: Cost,
) -> list[Weighting]:
    """The weightings to choose from, where ``etas`` and ``lengths`` are None if they are to be chosen too.

    The more a candidate costs, the fewer there are. ``epochs`` are those of the first stage, the longest window. The first one
    weighs all examples alike, if η is free.

    >>> free = {"pools": AUTO_POOLS, "etas": None, "lengths": None, "epochs": 20, "power": 1.0}
    >>> [len(weightings(**free, cost=cost)) for cost in ("none", "small", "large")]
    [40, 16, 8]
    """
    windows = _windows(lengths, epochs, cost)
    first, several = windows[0], windows if cost == "none" else windows[:1]
    found = [Weighting("example", 0.0, first)] if etas is None else []
    if "example" in pools:
        found += [Weighting("example", eta, length) for length in windows for eta in etas or _EXAMPLE_ETAS[cost]]
        found += [Weighting("example", _ETAS[-1], first)] if etas is None and cost == "small" else []
    if "class" in pools:
        found += [Weighting("class", eta, first) for eta in etas or _CLASS_ETAS[cost]]
    if "neighbours" in pools:
        found += [Weighting("neighbours", eta, length) for length in several for eta in etas or _NEIGHBOUR_ETAS[cost]]
    if "balance" in pools:
        found += [
            Weighting("balance", eta, length if eta else first)
            for length in several
            for eta in etas or _BALANCED_ETAS[cost]
        ]
    if "cell" in pools:
        powers = _POWERS[cost] if len(pools) > 1 else (power,)
        found += [Weighting("cell", 0.0, length, each) for length in several for each in powers]
    return list(dict.fromkeys(found))


def _windows(lengths: Sequence[int] | None, epochs: int, cost: Cost) -> list[int]:
    if lengths is not None:
        return list(lengths)
    tried = (2, 5, 10, epochs) if cost == "none" else (2, epochs)
    return sorted({min(length, epochs) for length in tried})


class UncertaintyWeights(Method, abc.ABC):
    """A method that weighs training examples by eta·u + c, where u is how often ERM gets them wrong.

    What is ``auto`` is chosen among the ``weightings`` on validation.
    """

    takes_weights: ClassVar[bool] = True
    open_with: ClassVar[Mapping[str, str]] = {"pool": "eta"}  # who sets eta asks for eta·u + c
    stages: ClassVar[tuple[str, ...]] = ("trajectory", "ensemble", "reference")

    eta: Eta  # every method gives its own default and search range
    c: float = Field(1.0, gt=0, description="weight of an example that was never wrong")
    normalize: bool = Field(True, description="scale the weights to mean 1; the paper applies them as they are")
    pool: Pool | Literal["auto"] = Field(
        "example",
        description="what an example weighs by: its own uncertainty, the mean of its class or of its nearest neighbours in the "
        "class, its own times class balance, or the inverse size of its cell, class and right or wrong",
    )
    power: float = Field(
        1.0, ge=0, le=1, description="with pool=cell: weights are the size of the cell to minus this power"
    )
    budget: float | None = Field(
        None,
        ge=0,
        le=1,
        description="with auto: how far validation accuracy may fall below ERM's; none: any",
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

    def erm_stages(self, epochs: int) -> tuple[ErmStage, ...]:
        if self.uncertainty == "ensemble":
            if self.length == "auto":
                raise UserError("length must be a number of models where uncertainty=ensemble, got 'auto'.")
            return ensemble_members(self.length, epochs)
        recorded = max(epochs, self.start + 1) if self.length == "auto" else self.start + self.length
        return (ErmStage("trajectory", recorded, record=self.record),)

    def measure(self, context: Context) -> "Measured":
        """The uncertainty of all examples, measured by ERM fits (eq. 6)."""
        stages = self.erm_stages(context.settings.epochs)
        if self.uncertainty == "ensemble":
            return ensemble_uncertainty(context, stages)
        trajectory = context.trajectory(stages[0])
        windows = tuple(range(1, stages[0].epochs - self.start + 1)) if self.length == "auto" else (self.length,)
        return Measured.of(trajectory, start=self.start, lengths=windows)

    def candidates(
        self,
        measured: "Measured",
        context: Context,
        objective: Callable[[Tensor], Objective],
        sampler: Sampler | None = None,
    ) -> list[Candidate]:
        """The weights that the settings leave open, as candidates, or the only ones."""
        weighings = weightings(
            pools=AUTO_POOLS if self.pool == "auto" else (self.pool,),
            etas=None if self.eta == "auto" else (self.eta,),
            lengths=None if self.length == "auto" else (self.length,),
            epochs=measured.longest,
            power=self.power,
            cost=candidate_cost(context.fresh_net()),
        )
        neighbours = _neighbours(context) if any(one.pool == "neighbours" for one in weighings) else None
        made = []
        for weighting in weighings:
            w = self.weigh(measured, weighting, context, neighbours)
            settings = {
                f"{self.name}.{key}": value for key, value in {**weighting.settings(), "start": self.start}.items()
            }
            name = f"{self.name} {weighting}"
            made.append(Candidate(name, self.name, settings, objective(w), sampler or Shuffled(), w))
        return made

    def weigh(
        self, measured: "Measured", weighting: Weighting, context: Context, neighbours: Tensor | None = None
    ) -> Tensor:
        """The weight of every training example, [n], on the context's device (eq. 7)."""
        train, u = context.task.splits["train"], measured.train(weighting.length)
        w = weighting.weights(
            u, train.y, c=self.c, neighbours=neighbours, sample_weight=train.weight, normalize=self.normalize
        )
        return w.to(context.device)

    def weigh_examples(
        self, context: Context, objective: Callable[[Tensor], Objective], sampler: Sampler | None = None
    ) -> "Weighed":
        """The weights of all training examples (Algorithm 2).

        ``objective`` is what the method minimises with given weights; a choice between several weights needs it.
        """
        measured, notes = self.measure(context), Notes()
        candidates = self.candidates(measured, context, objective, sampler)
        chosen = candidates[0]
        if len(candidates) > 1:
            selection = self._select(candidates, measured, context)
            chosen, context, notes = selection.winner, selection.context, selection.notes
        if chosen.weights is None:
            raise ValueError(f"A candidate of {self.name} must have weights, got {chosen.name}.")
        length = chosen.settings[f"{self.name}.length"]
        u = measured.train(length)
        notes += Notes(
            {"uncertainty": u, "weight": chosen.weights}, warnings=weight_warnings(chosen.weights.cpu(), u=u)
        )
        return Weighed(chosen.weights, measured.held_out(length), context, notes)

    def _select(self, candidates: Sequence[Candidate], measured: "Measured", context: Context) -> Selection:
        return select(
            limited_cost(context, measured.best_val, self.budget),
            candidates,
            content=self.model_dump_json(exclude={"eta", "pool", "length", "power", "budget"}),
        )


@final
@dataclass(frozen=True, eq=False)
class Weighed:
    """The weights of the training examples, [n], on the context's device, and the uncertainty of the held-out examples.

    The fit with these weights is that of ``context``, which limits it as it limited the choice of the weights, after ``notes``.
    """

    weights: Tensor
    held_out: HeldOutUncertainty
    context: Context
    notes: Notes


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

    def train(self, length: int) -> Tensor:
        """The uncertainty of the training examples, [n]."""
        return self.parts[length]["train"]

    def held_out(self, length: int) -> HeldOutUncertainty:
        """The uncertainty of the other examples; that of test is for reports, and None where the task has groups."""
        return HeldOutUncertainty(self.parts[length]["val"], self.parts[length].get("test"))


def _neighbours(context: Context) -> Tensor:
    """The nearest training examples of the same class of each training example, [n, k]."""
    x, y = example_vectors(context, ("train",))["train"], context.task.splits["train"].y.cpu().numpy()
    return torch.from_numpy(class_neighbours(x, y, rng=stream(context.seed, "neighbours", "rows")))


def ensemble_members(size: int, epochs: int) -> tuple[ErmStage, ...]:
    """The stages ``member-0``, ``member-1``, … of an ensemble of ``size`` ERM models, all with the settings of ``ensemble``."""
    return tuple(ErmStage(f"member-{member}", epochs, settings="ensemble") for member in range(size))


def ensemble_uncertainty(context: Context, members: Sequence[ErmStage]) -> Measured:
    """Share of the ``members`` that misclassify each example (UMIX, appendix on the simulated data set).

    Every member is an ERM model with an initialisation and an order of its own.
    """
    correct: dict[str, list[Tensor]] = {split: [] for split in ("train", *recorded_splits(context.task))}
    for member in members:
        for split, hits in context.reference_hits(member, tuple(correct)).items():
            correct[split].append(hits)
    u = {
        split: uncertainty(torch.stack(rows, dim=1), start=0, length=len(members)).cpu()
        for split, rows in correct.items()
    }
    return Measured({len(members): u}, 1 - float(u["val"].mean()))


_FEW = 0.02  # warn if the effective sample size is below this share of the training examples


def weight_warnings(weights: Tensor, *, u: Tensor) -> tuple[str, ...]:
    """Warnings if the uncertainties ``u`` [n] are all 0 or saturated, or if the ``weights`` [n] favour few examples."""
    of_uncertainty: tuple[str, ...] = ()
    if not u.any():
        of_uncertainty = ("The first model got every training row right, so all weights are equal.",)
    elif 2 * int((u == 1).sum()) > len(u):
        share = float((u == 1).double().mean())
        of_uncertainty = (
            f"The first model got {100 * share:.0f} % of the training rows wrong in every epoch, so their uncertainty is the same.",
        )
    return of_uncertainty + few_warnings(weights)


def few_warnings(weights: Tensor) -> tuple[str, ...]:
    """A warning if the ``weights`` [n] favour few examples."""
    n = len(weights)
    if (size := effective_sample_size(weights)) >= _FEW * n:
        return ()
    return (f"The weights favour few examples: their effective sample size is {size:.1f} of {n}.",)
