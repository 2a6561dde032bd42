"""Model selection as a pure function over saved validation counts. Test counts are not an argument, on purpose.

The one exception, ``oracle_choice``, is what the others are measured against and no legitimate selection.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from umix.core.judging import EVERY_GROUP, PRICE, Judging, Units, class_targets, judged_units, shrunk_rates
from umix.core.rates import per_group

#: The share of validation examples, those with the largest losses, whose mean loss the rule ``cvar`` looks at.
TAIL = 0.2
#: Looks at the test split: shown for regret only, never a way to choose a model.
ORACLE = "oracle_test"
_PARTS = 5

#: How a class is predicted from logits: the largest one, or the largest after biases that are chosen with the epoch.
Decide = Literal["biases", "argmax"]


@dataclass(frozen=True, eq=False)
class Counts:
    """Hits per epoch and sizes of one split: by group (may overlap), by class, and over all examples.

    ``composition`` counts the classes in each group, ``margins`` says which groups each margin unites, and ``judging`` when a group
    is judged.

    Where there was a first stage, also the accuracy of each fifth in order of its uncertainty (on test only without groups); on
    validation also the mean loss of the worst ``TAIL`` of the examples, NaN where it is not finite.
    """

    hits: np.ndarray  # [epochs, groups]
    sizes: np.ndarray  # [groups]
    class_hits: np.ndarray  # [epochs, classes]
    class_sizes: np.ndarray  # [classes]
    quintile_rates: np.ndarray = field(default_factory=lambda: np.zeros((0, 5)))  # [epochs, 5]
    tail_losses: np.ndarray = field(default_factory=lambda: np.zeros(0))  # [epochs]
    composition: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))  # [groups, classes]
    margins: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))  # [margins, groups]
    judging: Judging = EVERY_GROUP
    recall_hits: np.ndarray = field(
        default_factory=lambda: np.zeros((0, 0, 0), dtype=np.int64)
    )  # [epochs, groups, classes]
    biases: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))  # [decisions, classes]; the first is argmax
    decided_hits: np.ndarray = field(
        default_factory=lambda: np.zeros((0, 0, 0), dtype=np.int64)
    )  # [epochs, decisions, groups + classes]

    @property
    def epochs(self) -> int:
        return len(self.class_hits)

    @property
    def all_hits(self) -> np.ndarray:
        """Hits over all examples, [epochs]; classes are disjoint, groups need not be."""
        return np.asarray(self.class_hits.sum(axis=1))

    @property
    def n(self) -> int:
        return int(self.class_sizes.sum())

    @property
    def collapsed(self) -> NDArray[np.int64]:
        """The class that every example was predicted as, [epochs]; -1 where there were several, or where only one class exists.

        All of that class is hit and nothing of the others.
        """
        if (self.class_sizes > 0).sum() < 2:
            return np.full(self.epochs, -1)
        hit = self.class_hits > 0
        whole = ((self.class_hits == self.class_sizes) | ~hit).all(axis=1)
        return np.where((hit.sum(axis=1) == 1) & whole, hit.argmax(axis=1), -1)

    @property
    def has_decisions(self) -> bool:
        """Whether the hits of every candidate decision are known."""
        return len(self.biases) > 0 and len(self.decided_hits) == self.epochs

    def decided(self, decision: int) -> "Counts":
        """The counts of all epochs under one decision; parts that were counted for argmax only are left out."""
        return self if decision == 0 else self._under(self.decided_hits[:, decision])

    @property
    def every_decision(self) -> "Counts":
        """All epochs under the first decision, then all epochs under the second, and so on, as if each were an epoch."""
        return self._under(self.decided_hits.swapaxes(0, 1).reshape(-1, self.decided_hits.shape[2]))

    def only(self, epochs: Sequence[int]) -> "Counts":
        """The counts of these epochs alone."""
        kept = list(epochs)
        by_epoch = ("hits", "class_hits", "quintile_rates", "tail_losses", "recall_hits", "decided_hits")
        return replace(self, **{name: rows[kept] for name in by_epoch if len(rows := getattr(self, name))})

    def _under(self, hits: np.ndarray) -> "Counts":
        none = Counts(hits[:, :0], self.sizes[:0], hits[:, :0], self.class_sizes[:0])
        return replace(
            self,
            hits=hits[:, : len(self.sizes)],
            class_hits=hits[:, len(self.sizes) :],
            quintile_rates=none.quintile_rates,
            tail_losses=none.tail_losses,
            recall_hits=none.recall_hits,
            biases=none.biases,
            decided_hits=none.decided_hits,
        )

    def units(self, epoch: int | None = None) -> Units:
        """The groups, or what is judged in their place, at ``epoch``; without one, of all epochs."""
        at = slice(None) if epoch is None else epoch
        margins = self.margins if self.margins.shape[1:] == self.sizes.shape else None
        return judged_units(
            self.hits[at],
            self.sizes,
            self.class_hits[at],
            self.class_sizes,
            margins=margins,
            composition=self.composition if self.composition.shape[:1] == self.sizes.shape else None,
            judging=self.judging,
        )

    @property
    def choice_units(self) -> Units:
        """What takes part in a choice on this split, of all epochs: smaller groups too where few are known."""
        return replace(self, judging=self.judging.for_choice(int(self.sizes.sum()))).units()


Scores = NDArray[np.float64]


def _unknown(val: Counts) -> Scores:
    return np.full(val.epochs, np.nan)


def _worst(val: Counts) -> Scores:
    """The lowest rate of a judged group, pulled towards its class's rate by its size, or of a class as a whole."""
    units = val.choice_units
    if not units.judged.any() or not val.judging.choose:
        return _unknown(val)
    rates = shrunk_rates(units.hits, units.sizes, _targets(val, units), prior=val.judging.prior)
    lowest: Scores = rates[:, units.judged].min(axis=1)
    return np.minimum(lowest, _worst_class(val)) if val.judging.few and _within_classes(val) else lowest


def _within_classes(val: Counts) -> bool:
    """Whether every group is a part of one class; then a class as a whole is never worse than the worst of its groups."""
    return val.composition.shape[:1] == val.sizes.shape and bool(((val.composition > 0).sum(axis=1) <= 1).all())


def _targets(val: Counts, units: Units) -> Scores:
    """What each unit's rate is pulled towards, [epochs, units]; NaN where the classes of a unit are not known."""
    if val.composition.shape[:1] != val.sizes.shape:
        return np.full(units.hits.shape, np.nan)
    margins = val.margins if val.margins.shape[1:] == val.sizes.shape else np.zeros((0, len(val.sizes)), dtype=np.int64)
    composition = np.concatenate([val.composition, margins @ val.composition, np.diag(val.class_sizes)])
    return class_targets(composition, val.class_hits, val.class_sizes)


def _worst_recall(val: Counts) -> Scores:
    """The lowest recall of a class within a judged group; of groups with one class each, their worst rate."""
    if not val.sizes.any():
        return _worst_class(val)
    if not val.judging.choose:
        return _unknown(val)
    if _within_classes(val):
        return _worst(val)
    if len(val.recall_hits) != val.epochs:
        return _unknown(val)
    sizes = val.composition.reshape(-1)
    judged = sizes >= max(1, val.judging.for_choice(int(val.sizes.sum())).min_group)
    if not judged.any():
        return _worst_class(val)
    class_rates = per_group(val.class_hits, val.class_sizes)
    targets = np.broadcast_to(class_rates[:, None, :], val.recall_hits.shape).reshape(val.epochs, -1)
    hits = val.recall_hits.reshape(val.epochs, -1)
    lowest: Scores = shrunk_rates(hits, sizes, targets, prior=val.judging.prior)[:, judged].min(axis=1)
    return lowest


def _average(val: Counts) -> Scores:
    return val.all_hits / val.n if val.n else _unknown(val)


def _class_rates(val: Counts) -> Scores:
    known = val.class_sizes > 0
    return per_group(val.class_hits[:, known], val.class_sizes[known])


def _worst_class(val: Counts) -> Scores:
    return _class_rates(val).min(axis=1) if val.n else _unknown(val)


def _class_difference(val: Counts) -> Scores:
    rates = np.sort(_class_rates(val), axis=1)
    k = rates.shape[1]
    if k < 2:
        return _unknown(val)
    # In order, a rate is the larger one in as many pairs as there are before it: no matrix of pairs, for 10,000 classes.
    spread = rates @ (2 * np.arange(k) - k + 1) / (k * (k - 1) / 2)
    scores: Scores = -spread.round(12)  # so that equal differences of fractions are ties
    return scores


def _uncertainty_quintile(val: Counts) -> Scores:
    return val.quintile_rates.min(axis=1) if len(val.quintile_rates) else _unknown(val)


def _cvar(val: Counts) -> Scores:
    return -val.tail_losses if len(val.tail_losses) else _unknown(val)


def _last(val: Counts) -> Scores:
    return np.arange(val.epochs, dtype=np.float64)


def quintiles(u: np.ndarray) -> Scores:
    """The share of every example in each fifth of the examples in order of uncertainty ``u`` [n], [n, 5]; rows sum to 1.

    Examples that are equally uncertain share the fifths they span equally, so no order of the data set decides.

    >>> quintiles(np.array([0.0, 0.5, 0.0, 0.0, 1.0]))[:, 2:]
    array([[0.33333333, 0.        , 0.        ],
           [0.        , 1.        , 0.        ],
           [0.33333333, 0.        , 0.        ],
           [0.33333333, 0.        , 0.        ],
           [0.        , 0.        , 1.        ]])
    """
    _, level, sizes = np.unique(u, return_inverse=True, return_counts=True)
    ends, part = np.cumsum(sizes)[:, None], len(u) / _PARTS
    edges = part * np.arange(_PARTS)
    held = np.minimum(ends, edges + part) - np.maximum(ends - sizes[:, None], edges)  # [levels, 5], in examples
    shares: Scores = (held.clip(min=0) / sizes[:, None])[level]
    return shares


#: The score of every epoch under each rule: higher is better, NaN where the rule has none. ``worst`` needs groups in the
#: validation split. ``worst_recall`` is the lowest recall of a class within a group. ``uncertainty_quintile`` needs a first stage
#: that looked at the split. ``class_difference`` is the mean difference between two classes' accuracies, as small as possible.
RULES: Mapping[str, Callable[[Counts], Scores]] = MappingProxyType(
    {
        "worst": _worst,
        "average": _average,
        "worst_class": _worst_class,
        "worst_recall": _worst_recall,
        "class_difference": _class_difference,
        "uncertainty_quintile": _uncertainty_quintile,
        "cvar": _cvar,
        "last": _last,
    }
)


def best_epoch(val: Counts, rule: str) -> int:
    """The epoch with the highest validation score under ``rule``; epochs without a score (NaN) never win.

    Ties are broken by the mean rate of the judged groups, then by the average, then the earlier epoch wins.

    >>> counts = np.array([[1, 9], [3, 3], [3, 3]]); sizes = np.array([10, 10])
    >>> best_epoch(Counts(counts, sizes, counts, sizes), "worst")
    1
    """
    scores = RULES[rule](val)
    if not len(scores) or np.isnan(scores).all():
        raise ValueError(f"No epoch has a validation score under the rule {rule!r}, got {val.epochs} epochs.")
    return _best(val, rule, scores)


def _best(val: Counts, rule: str, scores: Scores) -> int:
    """The first of the highest ``scores``, of those with the best mean of judged groups and the best average."""
    candidates = np.flatnonzero(scores == np.nanmax(scores))
    breakers = [_judged_mean, _average] if val.judging.break_ties else []
    if rule == "class_difference" and not breakers:  # a net that is wrong on all classes treats them alike too
        breakers = [_average]
    for breaker in breakers:
        if len(candidates) > 1:
            rounded = np.nan_to_num(breaker(val)[candidates], nan=0.0).round(12)
            candidates = candidates[rounded == rounded.max()]
    return int(candidates[0])


@final
@dataclass(frozen=True)
class Choice:
    """An epoch and the number of a decision, as ``best_choice`` finds them on validation; decision 0 is argmax."""

    epoch: int
    decision: int = 0


#: Rules that compare decisions too. The others look at losses, at uncertainty or at nothing, which biases do not change.
DECIDING = ("worst", "average", "worst_class", "worst_recall", "class_difference")


def best_choice(val: Counts, rule: str, decide: Decide = "biases") -> Choice:
    """The epoch and the decision with the highest validation score under ``rule``, chosen together.

    Of equal ones the smallest biases win, then the earlier epoch. Where decisions were not counted, or ``decide`` is argmax, or the
    rule has no score for them, the epoch is chosen as ``best_epoch`` does.

    >>> sizes, hits = np.array([10, 10]), np.array([[10, 2]])
    >>> decided = {"biases": np.array([[0, 0], [0, 1.0]]), "decided_hits": np.array([[[10, 2], [8, 7]]])}
    >>> val = Counts(hits[:, :0], sizes[:0], hits, sizes, **decided)
    >>> best_choice(val, "worst_class")
    Choice(epoch=0, decision=1)
    """
    if decide == "argmax" or rule not in DECIDING or not val.has_decisions:
        return Choice(best_epoch(val, rule))
    every = val.every_decision
    scores = _weighed_up(RULES[rule](every), every, val, rule)
    if np.isnan(scores).all():
        return Choice(best_epoch(val, "average" if val.judging.floor is not None else rule))
    decision, epoch = divmod(_best(every, rule, scores), val.epochs)
    return Choice(epoch, decision)


def best_score(val: Counts, rule: str) -> float:
    """The highest score under ``rule`` of an epoch and a decision that the budget allows; NaN if it allows none."""
    every = val.every_decision if val.has_decisions else val
    scores = _weighed_up(RULES[rule](every), every, val, rule)
    return float("nan") if np.isnan(scores).all() else float(np.nanmax(scores))


def _weighed_up(scores: Scores, every: Counts, val: Counts, rule: str) -> Scores:
    """``scores`` of every epoch and decision with what they cost on average; NaN where the average is below ``judging.floor``.

    Where no group decides, or where the known groups are too small to be sure of them, nobody can see who pays for a better worst
    class or group. There a point of average accuracy is worth ``PRICE`` points of it.
    """
    if rule not in ("worst", "worst_recall", "worst_class"):
        return scores  # the others are averages themselves, or do not depend on decisions
    average, floor = _average(every), val.judging.floor
    by_groups = rule != "worst_class" and val.judging.groups_decide(val.sizes)
    worth = scores if by_groups or not val.judging.few else scores + PRICE * average
    return worth if floor is None else np.where(average >= floor - 1e-12, worth, np.nan)


def _judged_mean(val: Counts) -> Scores:
    units = val.choice_units
    if not units.judged.any() or not val.judging.choose:
        return _unknown(val)
    means: Scores = per_group(units.hits, units.sizes)[:, units.judged].mean(axis=1)
    return means


def choice_score(val: Counts, rule: str, choice: Choice) -> float:
    """The validation score of ``choice`` under ``rule``."""
    return float(RULES[rule](val.decided(choice.decision))[choice.epoch])


def oracle_choice(test: Counts, decide: Decide = "argmax") -> Choice:
    """The choice with the highest test rate of the worst group, or class where there are no groups: for regret only."""
    seen = replace(test, judging=replace(test.judging, choose=True, few=False, floor=None))
    return best_choice(seen, "worst" if (test.sizes > 0).any() else "worst_class", decide)
