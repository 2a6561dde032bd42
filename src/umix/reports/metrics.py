"""Metrics beyond accuracy, by group: error rates by kind, costs, ranking, calibration, and the differences between groups.

They are those of scikit-learn; the intervals are Wilson's for shares, and bootstrap intervals for the others.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from umix.bench.runs.record import RunRecord
from umix.core.statistics import FEW_EXAMPLES, Interval, wilson
from umix.core.streams import stream
from umix.core.words import group_name
from umix.errors import UserError, unknown

if TYPE_CHECKING:
    import polars


Labels = NDArray[np.str_]
#: The probability of every example, by class.
Probabilities = Mapping[str, NDArray[np.float32]]
#: Draws of a bootstrap interval.
DRAWS = 200
_BINS = 10

#: Shares of examples that are right or predicted so, of one class each but for the first.
SHARES = ("accuracy", "recall", "false_positive_rate", "precision", "selection_rate")
#: Numbers that follow from how often each class was predicted as which.
COUNTED = ("balanced_accuracy", "f1", "macro_f1", "cost")
#: Numbers that calibration changes; together with the next ones they need probabilities.
CALIBRATED = ("log_loss", "brier", "calibration_error")
SCORES = ("auroc", "average_precision", *CALIBRATED)
#: Largest difference between groups, by the names that fairlearn gives them.
DIFFERENCES = ("demographic_parity_difference", "equalized_odds_difference")
_NAMES = (*SHARES, *COUNTED, *SCORES, *DIFFERENCES)
_OF_NO_CLASS = ("accuracy", "balanced_accuracy", "macro_f1", *CALIBRATED)
_LOW = ("false_positive_rate", "cost", *CALIBRATED, *DIFFERENCES)
_COST = "cost:FN=5,FP=1"


@final
@dataclass(frozen=True)
class Metric:
    """A metric's name and, where it is about one class, the class: ``recall:yes``.

    ``costs`` are those of an example of the class that is missed, and of one of another class that is taken for it.
    """

    name: str
    label: str | None = None
    costs: tuple[float, float] = (1.0, 1.0)

    @classmethod
    def parse(cls, text: str, classes: Sequence[str]) -> "Metric":
        """The metric that ``text`` names; of two classes the second is meant where none is named.

        >>> Metric.parse("recall:yes", ["no", "yes"])
        Metric(name='recall', label='yes', costs=(1.0, 1.0))
        >>> Metric.parse("cost:FN=5,FP=0.5", ["no", "yes"])
        Metric(name='cost', label='yes', costs=(5.0, 0.5))
        """
        name, colon, label = text.partition(":")
        if name not in _NAMES:
            raise unknown("metric", name, _NAMES)
        if name in _OF_NO_CLASS:
            if colon:
                raise UserError(f"The metric {name} must be given without a class, got {text!r}.")
            return cls(name)
        costs = cls.costs
        if name == "cost":
            label, colon, told = label.rpartition(":")
            costs = _costs(told)
        if not colon:
            if len(classes) != 2:
                raise UserError(f"The metric {name} must name a class, {name}:CLASS, among {', '.join(classes)}.")
            return cls(name, classes[1], costs)
        if label not in classes:
            raise unknown(f"class of the metric {name}", label, classes)
        return cls(name, label, costs)

    @property
    def low_is_good(self) -> bool:
        """Whether a lower value is a better one."""
        return self.name in _LOW

    @property
    def is_share(self) -> bool:
        """Whether values lie in [0, 1] and are shown in percent."""
        return self.name not in ("cost", "log_loss")

    def text(self, value: float, interval: Interval | None = None) -> str:
        """A value as people read it, in percent where it is a share, and its interval in brackets.

        >>> Metric("brier").text(0.123), Metric("log_loss").text(0.5, Interval(0.4, 0.61)), Metric("brier").text(math.nan)
        ('12.3', '0.500 [0.400, 0.610]', '–')
        """
        if math.isnan(value):
            return "–"
        factor, form = (100, ".1f") if self.is_share else (1, ".3f")
        shown = f"{factor * value:{form}}"
        if interval is None or math.isnan(interval.low):
            return shown
        return f"{shown} [{factor * interval.low:{form}}, {factor * interval.high:{form}}]"

    def __str__(self) -> str:
        costs = ":FN={:g},FP={:g}".format(*self.costs) if self.name == "cost" else ""
        return self.name + (f":{self.label}" if self.label is not None else "") + costs


def _costs(text: str) -> tuple[float, float]:
    """The costs that ``FN=5,FP=1`` names."""
    given = dict(part.partition("=")[::2] for part in text.replace(" ", "").split(","))
    try:
        missed, false = float(given["FN"]), float(given["FP"])
        if len(given) == 2 and 0 <= missed < math.inf and 0 <= false < math.inf:
            return missed, false
    except (KeyError, ValueError):
        pass
    raise UserError(
        f"The metric cost must say what a missed example (FN) and a false alarm (FP) cost, numbers of at least 0, as in {_COST}, "
        f"got {text!r}."
    )


@final
@dataclass(frozen=True)
class Measured:
    """A metric on some examples: ``size`` is how many it is a share of, or how many there are."""

    value: float
    interval: Interval
    size: int


def measure(
    metric: Metric,
    label: NDArray[np.str_],
    prediction: NDArray[np.str_],
    p: Mapping[str, NDArray[np.float32]],
    *,
    draws: int = DRAWS,
) -> Measured:
    """``metric`` of these examples; NaN where it has none. ``p`` has the probability of every class.

    A bootstrap interval is of so many ``draws``, which take far longer than the metric; with 0 there is none.
    """
    if metric.name in SHARES:
        hits, size = _share(metric, label, prediction)
        return Measured(hits / size if size else math.nan, wilson(hits, size), size)
    return _counted(metric, label, prediction, draws) if metric.name in COUNTED else _scored(metric, label, p, draws)


def _share(metric: Metric, label: Labels, prediction: Labels) -> tuple[int, int]:
    """How many of how many examples the metric is the share of."""
    of, said = label == metric.label, prediction == metric.label
    whole, part = {
        "accuracy": (np.ones(len(label), dtype=bool), label == prediction),
        "recall": (of, said),
        "false_positive_rate": (~of, said),
        "precision": (said, of),
        "selection_rate": (np.ones(len(label), dtype=bool), said),
    }[metric.name]
    return int((whole & part).sum()), int(whole.sum())


def _counted(metric: Metric, label: Labels, prediction: Labels, draws: int) -> Measured:
    """A metric of the confusion matrix; draws of its counts are bootstrap samples of the examples."""
    names = sorted({*label.tolist(), *prediction.tolist(), *([] if metric.label is None else [metric.label])})
    number, n = {name: place for place, name in enumerate(names)}, len(label)
    cells = [
        number[of] * len(names) + number[said] for of, said in zip(label.tolist(), prediction.tolist(), strict=True)
    ]
    counts = np.bincount(cells, minlength=len(names) ** 2)
    place = number.get(metric.label or "", 0)

    def compute(flat: NDArray[np.int64]) -> NDArray[np.float64]:
        confusion = flat.reshape(*flat.shape[:-1], len(names), len(names)).astype(np.float64)
        hits, of, said = confusion.diagonal(axis1=-2, axis2=-1), confusion.sum(axis=-1), confusion.sum(axis=-2)
        if metric.name == "cost":
            missed, false = ((one - hits)[..., place] for one in (of, said))
            return np.asarray(metric.costs[0] * missed + metric.costs[1] * false) / n
        whole, part = (of, hits) if metric.name == "balanced_accuracy" else (of + said, 2 * hits)
        shares = np.divide(part, whole, out=np.full_like(part, np.nan), where=whole > 0)  # of classes that are there
        return np.asarray(shares[..., place] if metric.name == "f1" else np.nanmean(shares, axis=-1))

    value = float(compute(counts)) if n else math.nan
    if math.isnan(value) or not draws:
        return Measured(value, Interval(math.nan, math.nan), n)
    drawn = stream(0, "metrics", str(metric), n).multinomial(n, counts / n, size=draws)
    return Measured(value, _interval(compute(drawn)), n)


def _interval(drawn: NDArray[np.float64]) -> Interval:
    """The middle 95 % of the values that were ``drawn``."""
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return Interval(float(low), float(high))


def _scored(metric: Metric, label: Labels, p: Probabilities, draws: int) -> Measured:
    if not p:
        raise UserError(
            f"The metric {metric} must have the probability of every class, but a run with so many classes keeps only those of its "
            "predictions."
        )
    names = list(p)
    matrix = np.column_stack([p[name] for name in names]).astype(np.float64)
    number = {name: place for place, name in enumerate(names)}
    codes = np.array([number[one] for one in label.tolist()], dtype=np.int64)
    of = number.get(metric.label or "", 0)
    compute: Callable[[NDArray[np.int64], NDArray[np.float64]], float] = {
        "auroc": lambda y, q: auroc(y == of, q[:, of]),
        "average_precision": lambda y, q: _average_precision(y == of, q[:, of]),
        "log_loss": _log_loss,
        "brier": _brier,
        "calibration_error": _calibration_error,
    }[metric.name]
    value = compute(codes, matrix)
    if math.isnan(value) or not draws:
        return Measured(value, Interval(math.nan, math.nan), len(codes))
    rng = stream(0, "metrics", str(metric), len(codes))
    rows = [rng.integers(len(codes), size=len(codes)) for _ in range(draws)]
    drawn = np.array([compute(codes[chosen], matrix[chosen]) for chosen in rows])
    if metric.name == "calibration_error":  # chance adds to it, and in draws it adds twice
        drawn = np.maximum(0.0, 2 * value - drawn)
    return Measured(value, _interval(drawn), len(codes))


def auroc(positive: NDArray[np.bool_], score: NDArray[np.float64]) -> float:
    """How often a random positive has a higher score than a random negative, ties counted as half; NaN without both kinds.

    >>> auroc(np.array([False, False, True, True]), np.array([0.1, 0.5, 0.5, 0.9]))
    0.875
    """
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(positive, score)) if 0 < positive.sum() < len(positive) else math.nan


def roc(
    positive: NDArray[np.bool_], score: NDArray[np.float64], *, most: int = 100
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """False and true positive rates as the threshold falls, about ``most`` points of scikit-learn's ``roc_curve``.

    Without both kinds of examples there are no points.

    >>> roc(np.array([False, True, False, True]), np.array([0.1, 0.4, 0.4, 0.9]))
    (array([0. , 0. , 0.5, 1. ]), array([0. , 0.5, 1. , 1. ]))
    """
    from sklearn.metrics import roc_curve

    if not 0 < positive.sum() < len(positive):
        return np.empty(0), np.empty(0)
    false_positive, true_positive, _ = roc_curve(positive, score)
    kept = np.unique(np.linspace(0, len(false_positive) - 1, most).round().astype(int))
    return false_positive[kept], true_positive[kept]


def calibration(
    positive: NDArray[np.bool_], score: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean ``score`` and share of ``positive`` in bins of equally many examples: scikit-learn's ``calibration_curve``.

    There are as many bins as can have 30 examples each, at most ten and at least one.
    """
    from sklearn.calibration import calibration_curve

    if not len(positive):
        return np.empty(0), np.empty(0)
    n_bins = min(_BINS, max(1, len(positive) // FEW_EXAMPLES))
    share, mean = calibration_curve(positive, score.clip(0, 1), n_bins=n_bins, strategy="quantile")
    return mean, share


def _average_precision(positive: NDArray[np.bool_], score: NDArray[np.float64]) -> float:
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(positive, score)) if positive.any() else math.nan


def _log_loss(y: NDArray[np.int64], p: NDArray[np.float64]) -> float:
    """The mean of −log p of the label; what is below the precision of p counts as that."""
    return float(-np.log(p[np.arange(len(y)), y].clip(np.finfo(np.float64).eps)).mean()) if len(y) else math.nan


def _brier(y: NDArray[np.int64], p: NDArray[np.float64]) -> float:
    """The mean squared distance of the probabilities to the label, summed over classes; of two classes half of it."""
    if not len(y):
        return math.nan
    distance = ((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1).mean()
    return float(distance / 2 if p.shape[1] == 2 else distance)


def _calibration_error(y: NDArray[np.int64], p: NDArray[np.float64]) -> float:
    """Expected calibration error: |share − mean probability| in ten bins of the probability, weighted by their sizes.

    Of two classes it is the probability of the second: errors of both would cancel in the confidence. Of more it is that of the
    most probable class, and the share is how often that is the label.
    """
    if not len(y):
        return math.nan
    confidence, right = (p[:, 1], y == 1) if p.shape[1] == 2 else (p.max(axis=1), p.argmax(axis=1) == y)
    place = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
    sizes = np.bincount(place, minlength=_BINS)
    gaps = np.abs(np.bincount(place, right, minlength=_BINS) - np.bincount(place, confidence, minlength=_BINS))
    return float(gaps[sizes > 0].sum() / len(y))


def by_group(
    frame: "polars.DataFrame", metric: Metric, classes: Sequence[str], by: Sequence[str], *, draws: int = DRAWS
) -> dict[str, Measured]:
    """``metric`` of every combination of values of the columns ``by``, and as ``""`` of all rows of ``frame``.

    ``frame`` is what ``RunResult.frame`` gives; ``draws`` is as in ``measure``.
    """
    found = {"": _measure_rows(frame, metric, classes, draws)}
    known = frame.drop_nulls(list(by)) if by else frame  # a group that is not known is none
    for values, rows in known.group_by(list(by), maintain_order=True) if by else ():
        found[group_name([str(value) for value in values])] = _measure_rows(rows, metric, classes, draws)
    return found


def _measure_rows(frame: "polars.DataFrame", metric: Metric, classes: Sequence[str], draws: int) -> Measured:
    p = {name: frame[f"p_{name}"].to_numpy() for name in classes if f"p_{name}" in frame.columns}
    label, prediction = (frame[column].to_numpy().astype(str) for column in ("label", "prediction"))
    return measure(metric, label, prediction, p if len(p) == len(classes) else {}, draws=draws)


def uncalibrated(record: RunRecord, frame: "polars.DataFrame") -> "polars.DataFrame | None":
    """``frame`` with the probabilities as they were before calibration; None where there was none or they are not kept."""
    import polars

    choice, names = record.choice(), [f"p_{name}" for name in record.classes]
    if choice.epoch not in record.calibrations or not {*names} <= {*frame.columns}:
        return None
    before = record.calibration(choice).uncalibrated(frame.select(names).to_numpy())
    return frame.with_columns(polars.Series(name, before[:, k]) for k, name in enumerate(names))


def difference(
    frame: "polars.DataFrame", metric: Metric, classes: Sequence[str], by: Sequence[str], *, min_group: int
) -> float:
    """The largest difference between judged groups, as fairlearn defines it; NaN with fewer than two groups.

    Demographic parity compares selection rates. Equalised odds is the larger one of the differences in recall and in false positive
    rate.
    """
    names = {
        "demographic_parity_difference": ("selection_rate",),
        "equalized_odds_difference": ("recall", "false_positive_rate"),
    }.get(metric.name, (metric.name,))
    spans = []
    for name in names:
        measured = by_group(frame, replace(metric, name=name), classes, by, draws=0)
        values = [
            one.value
            for group, one in measured.items()
            if group and one.size >= min_group and not math.isnan(one.value)
        ]
        spans.append(max(values) - min(values) if len(values) > 1 else math.nan)
    return max(spans) if not any(map(math.isnan, spans)) else math.nan
