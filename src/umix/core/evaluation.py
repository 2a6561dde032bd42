"""Which groups are judged, the worst of them, and how their rates count in a selection.

Everything that names a worst group (selection, tables, the page, JSON, adapters) asks this file.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from umix.core.rates import per_group
from umix.core.statistics import wilson

Floats = NDArray[np.float64]
#: What a unit is: a group, a margin (the groups that share a label and a value of one group column), or a class.
Granularity = Literal["groups", "margins", "classes"]

#: How far known groups may be used: only reported, also to choose an epoch, also to train.
UseGroups = Literal["test", "val", "train"]

#: Examples from which on a group is judged by its rate alone.
MIN_GROUP = 30
#: Examples from which on a validation group takes part in a selection.
FEWEST = 5
#: Examples that the prior of a group's validation rate is worth.
PRIOR = 20.0
#: What the worst class counts for in a choice without groups. The average has the rest, so a point of it is worth 1.5 points of
#: the worst class.
WORST_SHARE = 0.4
#: How far a choice without groups may lower the mean of the class rates on validation below that of the simple methods.
GUARD = 0.01


@dataclass(frozen=True)
class Evaluation:
    """When a group is judged, and what a choice on validation may do.

    In a report a group of n examples is judged by its rate if n ≥ ``min_group``. A smaller one is judged too if its interval lies
    wholly below that of the worst large one: then its rate is no accident.

    In a selection every group of at least ``FEWEST`` examples takes part with the posterior mean (hits + m·r) / (n + m), where r is
    the rate that its classes have over all validation examples and m is ``prior``. This is the mean of
    Beta(m·r + hits, m·(1 − r) + n − hits): the prior Beta(m·r, m·(1 − r)) is worth m examples of that rate.
    """

    min_group: int = MIN_GROUP
    prior: float = PRIOR
    choose: bool = True  # whether groups may select an epoch, or are only reported
    #: How far a selection may lower the average on validation below ERM's; None: any.
    budget: float | None = None
    #: The lowest average on validation that an epoch and a threshold may have; None: any.
    floor: float | None = None
    #: The lowest mean of the class rates on validation that they may have where no groups choose; None: any.
    class_floor: float | None = None

    @property
    def fewest(self) -> int:
        """Examples from which on a group takes part in a selection; rates that are not pulled anywhere need ``min_group``.

        >>> Evaluation().fewest, Evaluation(prior=0).fewest
        (5, 30)
        """
        return min(self.min_group, FEWEST) if self.prior else self.min_group

    def groups_choose(self, sizes: ArrayLike) -> bool:
        """Whether groups and margins of these validation ``sizes`` choose: they may, and one of them is large enough.

        >>> Evaluation().groups_choose([4, 12]), Evaluation().groups_choose([4]), Evaluation(choose=False).groups_choose([900])
        (True, False, False)
        """
        return self.choose and bool((np.asarray(sizes) >= max(1, self.fewest)).any())


#: Every group that has an example is judged by its own rate, as papers do.
EVERY_GROUP = Evaluation(min_group=1, prior=0.0)


@dataclass(frozen=True, eq=False)
class EvaluationGroups:
    """Everything that can be judged: groups, then margins, then classes.

    ``hits`` is [..., units], ``sizes`` and ``large`` are [units]. A unit is large if it has enough examples to be judged by its
    rate; a class also has to stand in for its groups. ``n_groups`` and ``n_margins`` say how many of each there are.
    """

    hits: NDArray[np.int64]
    sizes: NDArray[np.int64]
    large: NDArray[np.bool_]
    n_groups: int
    n_margins: int

    def level(self, unit: int) -> Granularity:
        """What the unit of this number is."""
        if unit < self.n_groups:
            return "groups"
        return "margins" if unit < self.n_groups + self.n_margins else "classes"


def units_of(
    hits: ArrayLike,
    sizes: ArrayLike,
    class_hits: ArrayLike,
    class_sizes: ArrayLike,
    *,
    margin_hits: ArrayLike | None = None,
    margin_sizes: ArrayLike = (),
    composition: ArrayLike | None = None,
    margin_composition: ArrayLike | None = None,
    least: int = 1,
) -> EvaluationGroups:
    """All units, and which of them have ``least`` examples.

    A class without a large group or margin stands in for them as a whole: otherwise a net could fail it unseen.
    ``composition`` [groups, classes] counts the examples of each class in each group, ``margin_composition`` those in each margin;
    without them classes stand in only where nothing else is large. If even no class is large enough, the classes that have examples
    are. In a split without groups nothing is.

    >>> units = units_of([9, 1], [40, 3], [10, 0], [43, 0], least=30)
    >>> units.large.tolist()
    [True, False, False, False]
    """
    hit, size = np.asarray(hits, dtype=np.int64), np.asarray(sizes, dtype=np.int64)
    class_hit, class_size = np.asarray(class_hits, dtype=np.int64), np.asarray(class_sizes, dtype=np.int64)
    margin_size = np.asarray(margin_sizes, dtype=np.int64)
    margin_hit = hit[..., :0] if margin_hits is None else np.asarray(margin_hits, dtype=np.int64)
    fewest = max(1, least)
    is_large = np.concatenate([size, margin_size]) >= fewest
    stand_in = np.zeros(len(class_size), dtype=bool)
    if size.any() or margin_size.any():
        if composition is None:
            stand_in |= (class_size >= fewest) & ~is_large.any()
        else:
            none = np.zeros((0, len(class_size)), dtype=np.int64)
            parts = [np.asarray(composition), none if margin_composition is None else np.asarray(margin_composition)]
            held = np.concatenate(parts) > 0  # [groups + margins, classes]
            stand_in |= (class_size >= fewest) & held.any(axis=0) & ~held[is_large].any(axis=0)
        if not is_large.any() and not stand_in.any():
            stand_in = class_size > 0
    return EvaluationGroups(
        np.concatenate([hit, margin_hit, class_hit], axis=-1),
        np.concatenate([size, margin_size, class_size]),
        np.concatenate([is_large, stand_in]),
        len(size),
        len(margin_size),
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


@dataclass(frozen=True, eq=False)
class Worst:
    """The worst judged unit: its ``index`` among all units and its counts; ``judged`` [units] says which were judged.

    ``index`` is None where nothing is judged; the rate is NaN then.
    """

    level: Granularity
    index: int | None
    rate: float
    hits: int
    size: int
    judged: NDArray[np.bool_]


def worst_unit(units: EvaluationGroups) -> Worst:
    """The judged unit with the lowest rate, at one epoch; of equal ones the largest, because its rate is the surest.

    Large units are judged, and a small group or margin whose interval lies wholly below that of the worst large unit.

    >>> units = units_of([40, 1, 1], [80, 2, 20], [41, 1], [82, 20], least=30)
    >>> worst = worst_unit(units)  # 1 of 2 may be chance, 1 of 20 is not
    >>> worst.index, worst.judged.tolist()
    (2, [True, False, True, False, False])
    """
    if not units.large.any():
        return Worst("groups", None, float("nan"), 0, 0, units.large)
    rates = per_group(units.hits, units.sizes)

    def lowest(judged: NDArray[np.bool_]) -> int:
        return int(min(np.flatnonzero(judged), key=lambda unit: (rates[unit], -units.sizes[unit], unit)))

    worst = lowest(units.large)
    limit = wilson(int(units.hits[worst]), int(units.sizes[worst])).low
    judged = units.large.copy()
    for unit in range(units.n_groups + units.n_margins):
        size = int(units.sizes[unit])
        judged[unit] |= size > 0 and wilson(int(units.hits[unit]), size).high < limit
    worst = lowest(judged)
    return Worst(
        units.level(worst), worst, float(rates[worst]), int(units.hits[worst]), int(units.sizes[worst]), judged
    )
