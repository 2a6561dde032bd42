"""Which groups are large enough to judge, their rates pulled towards their class, and the worst of them.

Everything that names a worst group (selection, tables, the page, JSON) asks this file.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from umix.core.rates import per_group

Floats = NDArray[np.float64]
#: What is judged: the groups; their margins (one group column alone) if no group is large enough; then the classes.
Level = Literal["groups", "margins", "classes"]

#: How far known groups may be used: only reported, also to choose an epoch, also to train.
UseGroups = Literal["test", "val", "train"]

#: Examples that a group must have in a split to be judged there.
MIN_GROUP = 30
#: Examples that the prior of a group's validation rate is worth.
PRIOR = 20.0
#: What a point of average accuracy is worth in points of the worst class or group, where nobody can see who would pay for it.
PRICE = 1.5
#: How far a contest may lower the average on validation below ERM's there.
BUDGET = 0.1
_SHARE, _FEWEST = 0.01, 3


@dataclass(frozen=True)
class Judging:
    """When a group is judged, and how far its validation rate is pulled towards that of its class.

    A group of n examples is judged if n ≥ ``min_group``. In a selection its rate is the posterior mean
    (hits + m·r) / (n + m), where r is the rate that its classes have over all validation examples and m is ``prior``. This is the
    mean of Beta(m·r + hits, m·(1 − r) + n − hits): the prior Beta(m·r, m·(1 − r)) is worth m examples of that rate.
    """

    min_group: int = MIN_GROUP
    prior: float = PRIOR
    choose: bool = True  # whether groups may select an epoch, or are only reported
    break_ties: bool = True  # False: the first of equal epochs, as runs of earlier versions kept its weights
    #: How far a contest may lower the average on validation below ERM's; None: as ``floor_below`` says.
    budget: float | None = None
    #: The lowest average on validation that an epoch and a decision may have; None: any.
    floor: float | None = None
    #: Whether many validation groups are estimates that are little better than chance.
    doubtful: bool = False
    #: Whether smaller groups take part in a choice where few groups are known; False in runs of earlier versions.
    few: bool = True

    def for_choice(self, known: int) -> "Judging":
        """The judging of a choice where the groups of ``known`` validation examples are known.

        Where they are few, a group takes part from a hundredth of them on, at least three: its rate is pulled towards that of its
        class, so a small group cannot decide alone.

        >>> Judging().for_choice(400).min_group, Judging().for_choice(10_000).min_group
        (4, 30)
        """
        least = max(_FEWEST, math.ceil(_SHARE * known))
        pulled = self.few and self.prior > 0
        return replace(self, min_group=min(self.min_group, least)) if pulled else self

    def groups_decide(self, sizes: NDArray[np.int64]) -> bool:
        """Whether groups of these validation ``sizes`` may choose, and all that are known are large enough to be sure of them."""
        known = sizes[sizes > 0]
        large = bool((known >= min(self.min_group, MIN_GROUP)).all())
        return self.choose and not self.doubtful and len(known) > 0 and large

    def floor_below(self, baseline: float, *, groups_decide: bool) -> float | None:
        """The lowest average accuracy on validation that a choice may have, where ERM's is ``baseline``; None: any.

        >>> Judging().floor_below(0.9, groups_decide=False), Judging(budget=0.02).floor_below(0.9, groups_decide=True)
        (0.8, 0.88)
        """
        if self.budget is None and groups_decide:
            return None
        return baseline - (BUDGET if self.budget is None else self.budget)


#: Every group that has an example is judged by its own rate: the rule of runs that say no other.
EVERY_GROUP = Judging(min_group=1, prior=0.0, few=False)


@dataclass(frozen=True, eq=False)
class Units:
    """Everything that can be judged: groups, then margins, then classes.

    ``hits`` is [..., units], ``sizes`` and ``judged`` are [units]; ``n_groups`` and ``n_margins`` say how many of each there are.
    """

    hits: NDArray[np.int64]
    sizes: NDArray[np.int64]
    judged: NDArray[np.bool_]
    n_groups: int
    n_margins: int

    @property
    def level(self) -> Level:
        """The coarsest kind of unit that is judged."""
        if self.judged[self.n_groups + self.n_margins :].any():
            return "classes"
        return "margins" if self.judged[self.n_groups :].any() else "groups"

    @property
    def n_judged(self) -> int:
        return int(self.judged.sum())

    @property
    def n_too_small(self) -> int:
        """How many groups have examples, but too few."""
        return int(((self.sizes > 0) & ~self.judged)[: self.n_groups].sum())


def judged_units(
    hits: ArrayLike,
    sizes: ArrayLike,
    class_hits: ArrayLike,
    class_sizes: ArrayLike,
    *,
    margins: ArrayLike | None = None,
    composition: ArrayLike | None = None,
    judging: Judging = EVERY_GROUP,
) -> Units:
    """Which groups are large enough to judge, and what stands in for classes that have no such group.

    A class without a judged group is judged by its margins, and if these are too small as a whole: otherwise a net could fail it
    unseen. ``margins`` [margins, groups] says which groups each margin unites, ``composition`` [groups, classes] how many examples
    of each class a group has; without it margins and classes stand in only where no group at all is judged. If even no class is
    large enough, the classes that have examples are judged. In a split without groups nothing is judged.

    >>> units = judged_units([9, 1], [40, 3], [10, 0], [43, 0], judging=Judging(min_group=30))
    >>> units.level, units.judged.tolist(), units.n_too_small
    ('groups', [True, False, False, False], 1)
    """
    hit, size = np.asarray(hits, dtype=np.int64), np.asarray(sizes, dtype=np.int64)
    class_hit, class_size = np.asarray(class_hits, dtype=np.int64), np.asarray(class_sizes, dtype=np.int64)
    unites = np.zeros((0, len(size)), dtype=np.int64) if margins is None else np.asarray(margins, dtype=np.int64)
    least, united = max(1, judging.min_group), unites @ size
    parts = [size >= least, np.zeros(len(united), dtype=bool), np.zeros(len(class_size), dtype=bool)]
    if size.any():
        holds = np.ones((len(size), 1), dtype=bool) if composition is None else np.asarray(composition) > 0
        for label, held in enumerate(
            holds.T
        ):  # the groups with examples of one class; all groups where classes are not known
            if (parts[0] & held).any() or not held.any():
                continue
            own = (unites @ ~held == 0) & (united >= least)  # margins of nothing but these groups
            parts[1] |= own
            if not own.any():
                of_class = composition is None or np.arange(len(class_size)) == label
                parts[2] |= of_class & (class_size >= least)
        if not any(part.any() for part in parts):
            parts[2] = class_size > 0
    return Units(
        np.concatenate([hit, hit @ unites.T, class_hit], axis=-1),
        np.concatenate([size, united, class_size]),
        np.concatenate(parts),
        len(size),
        len(united),
    )


def shrunk_rates(hits: ArrayLike, sizes: ArrayLike, towards: ArrayLike, *, prior: float) -> Floats:
    """Posterior means (hits + prior·towards) / (sizes + prior), [..., groups]; with prior 0 the rates themselves.

    An empty group has the rate ``towards``, or NaN with prior 0. Where ``towards`` is NaN nothing is known and the rate stays
    as it is.

    >>> shrunk_rates([0, 0], [10, 1000], [0.9, 0.9], prior=20).round(3)
    array([0.6  , 0.018])
    """
    hit, size = np.asarray(hits, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    raw, target = per_group(hit, size), np.asarray(towards, dtype=np.float64)
    if not prior:
        return raw
    pulled: Floats = (hit + prior * target) / (size + prior)
    return np.where(np.isnan(target), raw, pulled)


def class_targets(composition: ArrayLike, class_hits: ArrayLike, class_sizes: ArrayLike) -> Floats:
    """The rate that each group would have if its examples did as well as their classes do, [..., groups].

    ``composition`` [groups, classes] counts the examples of each class in each group. A group of one class has that class's rate.

    >>> class_targets([[10, 0], [5, 5]], [80, 30], [100, 100])
    array([0.8 , 0.55])
    """
    counts = np.asarray(composition, dtype=np.float64)
    rates = per_group(class_hits, class_sizes)
    total = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, total, out=np.full_like(counts, np.nan), where=total > 0)
    targets: Floats = np.where(np.isnan(rates), 0.0, rates) @ shares.T
    return targets


@dataclass(frozen=True)
class Worst:
    """The worst judged unit: its ``index`` among all units, its counts, and how many were judged or too small.

    ``index`` is None where nothing is judged; the rate is NaN then.
    """

    level: Level
    index: int | None
    rate: float
    hits: int
    size: int
    n_judged: int
    n_too_small: int


def worst_unit(units: Units) -> Worst:
    """The judged unit with the lowest rate; of equal ones the largest, because its rate is the surest.

    >>> units = judged_units([20, 1, 40], [40, 2, 80], [61, 0], [122, 0], judging=Judging(min_group=30))
    >>> worst_unit(units).index
    2
    """
    rates = per_group(units.hits, units.sizes)
    known = np.flatnonzero(units.judged)
    if not len(known):
        return Worst(units.level, None, float("nan"), 0, 0, 0, units.n_too_small)
    index = int(min(known, key=lambda unit: (rates[unit], -units.sizes[unit], unit)))
    return Worst(
        units.level,
        index,
        float(rates[index]),
        int(units.hits[index]),
        int(units.sizes[index]),
        units.n_judged,
        units.n_too_small,
    )
