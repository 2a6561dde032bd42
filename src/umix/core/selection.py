"""Model selection as a pure function over saved validation counts. Test counts are not an argument, on purpose.

The one exception, ``oracle_choice``, is what the others are measured against and no legitimate selection.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from umix.core.epoch_counts import Counts
from umix.core.evaluation import FEWEST, GUARD, WORST_SHARE, EvaluationGroups, class_targets, shrunk_rates
from umix.core.rates import per_group

#: Looks at the test split: shown for regret only, never a way to choose a model.
ORACLE = "oracle_test"

#: How a class is predicted from logits: the largest one, or the largest after biases that are chosen with the epoch.
Threshold = Literal["tuned", "off"]
Scores = NDArray[np.float64]


def _unknown(val: Counts) -> Scores:
    return np.full(val.epochs, np.nan)


def _worst(val: Counts) -> Scores:
    """The lowest rate of a group or margin, pulled towards its class's rate by its size, or of a class as a whole."""
    units = val.choice_units
    if not units.large.any() or not val.evaluation.choose:
        return _unknown(val)
    rates = shrunk_rates(units.hits, units.sizes, _targets(val, units), prior=val.evaluation.prior)
    lowest: Scores = rates[:, units.large].min(axis=1)
    return np.minimum(lowest, _worst_class(val)) if val.evaluation.prior and _within_classes(val) else lowest


def worst_size(at: Counts, rule: str) -> float:
    """How many examples the score of one epoch under ``rule`` rests on: those of the worst group or class, and its prior's."""
    if rule != "worst":
        rates = np.where(_judged_classes(at), per_group(at.class_hits, at.class_sizes)[0], np.inf)
        return float(at.class_sizes[int(rates.argmin())])
    units = at.choice_units
    shrunk = shrunk_rates(units.hits, units.sizes, _targets(at, units), prior=at.evaluation.prior)[0]
    worst = int(np.where(units.large, shrunk, np.inf).argmin())
    return float(units.sizes[worst] + at.evaluation.prior)


def _within_classes(val: Counts) -> bool:
    """Whether every group is a part of one class; then a class as a whole is never worse than the worst of its groups."""
    return val.composition.shape[:1] == val.sizes.shape and bool(((val.composition > 0).sum(axis=1) <= 1).all())


def _targets(val: Counts, units: EvaluationGroups) -> Scores:
    """What each unit's rate is pulled towards, [epochs, units]; NaN where the classes of a unit are not known."""
    if val.composition.shape[:1] != val.sizes.shape:
        return np.full(units.hits.shape, np.nan)
    margins = val.margin_composition if len(val.margin_sizes) else val.composition[:0]
    composition = np.concatenate([val.composition, margins, np.diag(val.class_sizes)])
    return class_targets(composition, val.class_hits, val.class_sizes)


def _worst_recall(val: Counts) -> Scores:
    """The lowest recall of a class within a group; of groups with one class each, their worst rate."""
    if not val.sizes.any():
        return _worst_class(val)
    if not val.evaluation.choose:
        return _unknown(val)
    if _within_classes(val):
        return _worst(val)
    if len(val.recall_hits) != val.epochs:
        return _unknown(val)
    sizes = val.composition.reshape(-1)
    large = sizes >= max(1, val.evaluation.fewest)
    if not large.any():
        return _worst_class(val)
    class_rates = per_group(val.class_hits, val.class_sizes)
    targets = np.broadcast_to(class_rates[:, None, :], val.recall_hits.shape).reshape(val.epochs, -1)
    hits = val.recall_hits.reshape(val.epochs, -1)
    lowest: Scores = shrunk_rates(hits, sizes, targets, prior=val.evaluation.prior)[:, large].min(axis=1)
    return lowest


def _average(val: Counts) -> Scores:
    return val.all_hits / val.n if val.n else _unknown(val)


def _class_rates(val: Counts) -> Scores:
    present = val.class_sizes > 0
    return per_group(val.class_hits[:, present], val.class_sizes[present])


def _judged_classes(val: Counts) -> NDArray[np.bool_]:
    """The classes that are large enough to choose by; if none is, all that have examples."""
    large = val.class_sizes >= max(1, min(val.evaluation.min_group, FEWEST))
    return large if large.any() else val.class_sizes > 0


def _worst_class(val: Counts) -> Scores:
    """The lowest rate of a class; one example of a rare class must not decide for all others."""
    return _judged_class_rates(val).min(axis=1) if val.n else _unknown(val)


def _judged_class_rates(val: Counts) -> Scores:
    judged = _judged_classes(val)
    return per_group(val.class_hits[:, judged], val.class_sizes[judged])


def _balanced(val: Counts) -> Scores:
    """A weighted mean of the worst class and the average.

    A minority that nobody knows of lowers the rate of its class. But a better worst class is paid for by examples of which nobody
    sees the groups, so the average counts as well.
    """
    return WORST_SHARE * _worst_class(val) + (1 - WORST_SHARE) * _average(val)


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


#: The score of every epoch under each rule: higher is better, NaN where the rule has none. ``worst`` needs groups in the
#: validation split. ``balanced`` is a weighted mean of the worst class and the average. ``worst_recall`` is the lowest recall of a
#: class within a group. ``uncertainty_quintile`` needs a first stage that looked at the split.
#: ``class_difference`` is the mean difference between two classes' accuracies, as small as possible.
RULES: Mapping[str, Callable[[Counts], Scores]] = MappingProxyType(
    {
        "worst": _worst,
        "balanced": _balanced,
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

    Ties are broken by the mean rate of the groups, then by the average, then the earlier epoch wins.

    >>> counts = np.array([[1, 9], [3, 3], [3, 3]]); sizes = np.array([10, 10])
    >>> best_epoch(Counts(counts, sizes, counts, sizes), "worst")
    1
    """
    return _best(val, _some_score(val, rule))


def _some_score(val: Counts, rule: str) -> Scores:
    """The scores under ``rule``; raises if no epoch has one."""
    scores = RULES[rule](val)
    if not len(scores) or np.isnan(scores).all():
        raise ValueError(f"No epoch has a validation score under the rule {rule!r}, got {val.epochs} epochs.")
    return scores


def _best(val: Counts, scores: Scores) -> int:
    """The first of the highest ``scores``, of those with the best mean of groups and the best average."""
    candidates = np.flatnonzero(scores == np.nanmax(scores))
    for breaker in (_group_mean, _average):
        if len(candidates) > 1:
            rounded = np.nan_to_num(breaker(val)[candidates], nan=0.0).round(12)
            candidates = candidates[rounded == rounded.max()]
    return int(candidates[0])


@final
@dataclass(frozen=True)
class Choice:
    """An epoch and the number of a threshold, as ``best_choice`` finds them on validation; threshold 0 is argmax."""

    epoch: int
    threshold: int = 0


#: Rules that compare thresholds too. The others look at losses, at uncertainty or at nothing, which biases do not change.
THRESHOLD_RULES = ("worst", "balanced", "average", "worst_class", "worst_recall", "class_difference")
#: Rules that no choice may follow beyond the limits of ``Evaluation``; the others are averages, or losses.
_LIMITED = ("worst", "balanced", "worst_class", "worst_recall")


def default_rule(val: Counts) -> str:
    """The rule that selects where none is named: the worst group where known groups choose, else the classes alone."""
    return "worst" if val.groups_choose else "balanced"


def best_choice(val: Counts, rule: str, threshold: Threshold = "tuned") -> Choice:
    """The epoch and the threshold with the highest validation score under ``rule``, chosen together.

    Of equal ones the smallest biases win, then the earlier epoch. Where thresholds were not counted, or ``threshold`` is off, or
    the rule has no score for them, the epoch is chosen alone.

    >>> sizes, hits = np.array([10, 10]), np.array([[10, 2]])
    >>> decided = {"biases": np.array([[0, 0], [0, 1.0]]), "threshold_hits": np.array([[[10, 2], [8, 7]]])}
    >>> val = Counts(hits[:, :0], sizes[:0], hits, sizes, **decided)
    >>> best_choice(val, "worst_class")
    Choice(epoch=0, threshold=1)
    """
    if rule not in THRESHOLD_RULES:
        return Choice(best_epoch(val, rule))
    every = val.every_threshold if threshold == "tuned" else val
    if np.isnan(
        RULES[rule](every)
    ).all():  # worst_recall of groups with several classes is not counted under thresholds
        every = val
    allowed = allowed_scores(_some_score(every, rule), every, rule)
    if np.isnan(allowed).all():  # what the budget allows and is best for the classes, else the best average
        affordable = replace(every, evaluation=replace(every.evaluation, class_floor=None))
        allowed = within_limits(mean_class(every), affordable)
    if np.isnan(allowed).all():
        allowed = _average(every)
    place, epoch = divmod(_best(every, allowed), val.epochs)
    return Choice(epoch, place)


def best_score(val: Counts, rule: str) -> float:
    """The highest score under ``rule`` of an epoch and a threshold that is allowed; NaN if none is."""
    every = val.every_threshold
    scores = allowed_scores(RULES[rule](every), every, rule)
    return float("nan") if np.isnan(scores).all() else float(np.nanmax(scores))


def allowed_scores(scores: Scores, every: Counts, rule: str) -> Scores:
    """``scores`` under ``rule`` of every epoch and threshold; NaN where ``evaluation`` does not allow them."""
    return within_limits(scores, every) if rule in _LIMITED else scores


def within_limits(scores: Scores, every: Counts) -> Scores:
    """``scores`` of every epoch and threshold; NaN where the average or the mean of the classes is below a floor."""
    evaluation = every.evaluation
    allowed = np.ones(every.epochs, dtype=bool)
    if evaluation.floor is not None:
        allowed &= _average(every) >= evaluation.floor - 1e-12
    if evaluation.class_floor is not None and not every.groups_choose:
        allowed &= mean_class(every) >= evaluation.class_floor - 1e-12
    return np.where(allowed, scores, np.nan)


def mean_class(val: Counts) -> Scores:
    """The mean rate of the classes that are large enough to choose by, [epochs]: a choice without groups must not give it away."""
    return np.asarray(_judged_class_rates(val).mean(axis=1)) if val.n else _unknown(val)


def class_floor(val: Counts) -> float:
    """The lowest mean of the class rates that is as good as the best epoch and threshold of ``val``.

    That is a point less than the best, or a standard error of it where that is more: with few examples a point is chance.
    """
    every = val.every_threshold
    means = mean_class(every)
    best = int(means.argmax())
    rates, sizes = _judged_class_rates(every)[best], every.class_sizes[_judged_classes(every)]
    error = float(np.sqrt((rates * (1 - rates) / sizes).sum()) / len(sizes))
    return float(means[best]) - max(GUARD, error)


def _group_mean(val: Counts) -> Scores:
    units = val.choice_units
    large = units.large.copy()
    if large[: units.n_groups].any():
        large[units.n_groups :] = False
    if not large.any() or not val.evaluation.choose:
        return _unknown(val)
    means: Scores = per_group(units.hits, units.sizes)[:, large].mean(axis=1)
    return means


def choice_score(val: Counts, rule: str, choice: Choice) -> float:
    """The validation score of ``choice`` under ``rule``."""
    return float(RULES[rule](val.at_threshold(choice.threshold))[choice.epoch])


def oracle_choice(test: Counts, threshold: Threshold = "off") -> Choice:
    """The choice with the highest test rate of the worst group, or class where there are no groups: for regret only."""
    plain = replace(test.evaluation, choose=True, prior=0.0, floor=None, class_floor=None)
    compared = threshold == "tuned" and test.has_thresholds
    seen = replace(test.every_threshold if compared else test, evaluation=plain)
    scores = RULES["worst" if (test.sizes > 0).any() else "worst_class"](seen)
    place, epoch = divmod(_best(seen, scores), test.epochs)
    return Choice(epoch, place)
