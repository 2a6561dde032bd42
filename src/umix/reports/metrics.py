"""Metrics beyond accuracy, by group: error rates by kind, ranking, calibration, and the differences between groups.

scikit-learn computes them; the intervals are Wilson's for shares, and bootstrap intervals for the others.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from umix.bench.runs.example_tables import group_column, named_frame, read_held_out
from umix.bench.runs.folds import by_seed
from umix.bench.runs.record import RunRecord
from umix.core.statistics import FEW_EXAMPLES, Interval, Spread, wilson
from umix.core.streams import stream
from umix.core.words import group_name
from umix.errors import UserError, unknown
from umix.reports.comparison import different_fits, over_seeds
from umix.reports.tables.text_table import Entry, TextTable, marked, percent

if TYPE_CHECKING:
    import polars


Labels = NDArray[np.str_]
#: The probability of every example, by class.
Probabilities = Mapping[str, NDArray[np.float32]]
_DRAWS = 200
_BINS = 10

#: Shares of examples that are right or predicted so, of one class each but for the first.
SHARES = ("accuracy", "recall", "false_positive_rate", "precision", "selection_rate")
#: Numbers that need probabilities.
SCORES = ("auroc", "brier", "calibration_error")
#: Largest difference between groups, by the names that fairlearn gives them.
DIFFERENCES = ("demographic_parity_difference", "equalized_odds_difference")


@final
@dataclass(frozen=True)
class Metric:
    """A metric's name and, where it is about one class, the class: ``recall:yes``."""

    name: str
    label: str | None = None

    @classmethod
    def parse(cls, text: str, classes: Sequence[str]) -> "Metric":
        """The metric that ``text`` names; of two classes the second is meant where none is named.

        >>> Metric.parse("recall:yes", ["no", "yes"])
        Metric(name='recall', label='yes')
        """
        name, colon, label = text.partition(":")
        if name not in (*SHARES, *SCORES, *DIFFERENCES):
            raise unknown("metric", name, (*SHARES, *SCORES, *DIFFERENCES))
        if name in ("accuracy", "brier", "calibration_error"):
            if colon:
                raise UserError(f"The metric {name} must be given without a class, got {text!r}.")
            return cls(name)
        if not colon:
            if len(classes) != 2:
                raise UserError(f"The metric {name} must name a class, {name}:CLASS, among {', '.join(classes)}.")
            return cls(name, classes[1])
        if label not in classes:
            raise unknown(f"class of the metric {name}", label, classes)
        return cls(name, label)

    def __str__(self) -> str:
        return self.name if self.label is None else f"{self.name}:{self.label}"


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
    draws: int = _DRAWS,
) -> Measured:
    """``metric`` of these examples; NaN where it has none. ``p`` has the probability of every class.

    A bootstrap interval is of so many ``draws``, which take far longer than the metric; with 0 there is none.
    """
    if metric.name in SHARES:
        hits, size = _share(metric, label, prediction)
        return Measured(hits / size if size else math.nan, wilson(hits, size), size)
    return _scored(metric, label, p, draws)


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
        "brier": _brier,
        "calibration_error": _calibration_error,
    }[metric.name]
    value = compute(codes, matrix)
    if math.isnan(value) or not draws:
        return Measured(value, Interval(math.nan, math.nan), len(codes))
    rng = stream(0, "metrics", str(metric), len(codes))
    rows = [rng.integers(len(codes), size=len(codes)) for _ in range(draws)]
    drawn = np.array([compute(codes[chosen], matrix[chosen]) for chosen in rows])
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return Measured(value, Interval(float(low), float(high)), len(codes))


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


def _brier(y: NDArray[np.int64], p: NDArray[np.float64]) -> float:
    """The mean squared distance of the probabilities to the label, summed over classes; of two classes half of it."""
    if not len(y):
        return math.nan
    distance = ((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1).mean()
    return float(distance / 2 if p.shape[1] == 2 else distance)


def _calibration_error(y: NDArray[np.int64], p: NDArray[np.float64]) -> float:
    """Expected calibration error: |accuracy − confidence| of predictions in ten bins of confidence, weighted by their sizes."""
    if not len(y):
        return math.nan
    confidence, right = p.max(axis=1), p.argmax(axis=1) == y
    place = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
    sizes = np.bincount(place, minlength=_BINS)
    gaps = np.abs(np.bincount(place, right, minlength=_BINS) - np.bincount(place, confidence, minlength=_BINS))
    return float(gaps[sizes > 0].sum() / len(y))


def by_group(
    frame: "polars.DataFrame", metric: Metric, classes: Sequence[str], by: Sequence[str], *, draws: int = _DRAWS
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
        measured = by_group(frame, Metric(name, metric.label), classes, by, draws=0)
        values = [
            one.value
            for group, one in measured.items()
            if group and one.size >= min_group and not math.isnan(one.value)
        ]
        spans.append(max(values) - min(values) if len(values) > 1 else math.nan)
    return max(spans) if not any(map(math.isnan, spans)) else math.nan


#: Metrics of which the lowest value is the best.
_LOW = ("false_positive_rate", "brier", "calibration_error", *DIFFERENCES)


def metric_tables(runs: Mapping[str, Mapping[str, Sequence[RunRecord]]], text: str) -> list[TextTable]:
    """A table of the metric ``text`` (``recall:yes``) for every task; groups are the values of all group columns together."""
    return [_metric_table(task, methods, text) for task, methods in runs.items()]


def _metric_table(task: str, methods: Mapping[str, Sequence[RunRecord]], text: str) -> TextTable:
    first = next(iter(methods.values()))[0]
    metric, by = Metric.parse(text, first.classes), [group_column(name) for name in first.group_columns[1:]]
    overall: list[Spread] = []
    worst: list[Spread] = []
    apart: list[Spread] = []
    names: list[str] = []
    for records in methods.values():
        rows = [_measured(folds, metric, by) for folds in by_seed(records).values()]
        fits = different_fits(records)
        overall.append(over_seeds([row[0] for row in rows], fits))
        worst.append(over_seeds([row[1] for row in rows], fits))
        apart.append(over_seeds([row[2] for row in rows], fits))
        names.append("; ".join(dict.fromkeys(row[3] for row in rows)))
    best = metric.name not in _LOW
    header = ["method", "seeds", "all", "worst judged group", "which", "largest difference"]
    table = [
        [
            Entry(label),
            Entry(str(len(by_seed(records)))),
            marked(overall)[k] if best else Entry(percent(overall[k])),
            marked(worst)[k] if best else Entry(percent(worst[k])),
            Entry(names[k]),
            Entry(percent(apart[k])),
        ]
        for k, (label, records) in enumerate(methods.items())
    ]
    notes = [
        f"{metric} of the selected net on test in percent, mean ± standard deviation over seeds. Groups: "
        f"{' × '.join(by) or 'none'}, judged from {first.min_group} examples on. Largest difference: between two judged groups."
    ]
    return TextTable(f"{task}: {metric}", header, table, notes)


def _measured(folds: Sequence[RunRecord], metric: Metric, by: Sequence[str]) -> tuple[float, float, float, str]:
    """The metric over all test rows of a run, of the worst judged group, the largest difference, and that group's name."""
    import polars

    record = folds[0]
    frame = polars.concat([named_frame(fold, read_held_out(fold), "test") for fold in folds])
    apart = difference(frame, metric, record.classes, by, min_group=record.min_group) if by else math.nan
    if metric.name in DIFFERENCES:
        return math.nan, math.nan, apart, "–"
    measured = by_group(frame, metric, record.classes, by, draws=0)
    judged = {
        name: one.value
        for name, one in measured.items()
        if name and one.size >= record.min_group and not math.isnan(one.value)
    }
    if not judged:
        return measured[""].value, math.nan, apart, "–"
    name = (max if metric.name in _LOW else min)(judged, key=judged.__getitem__)
    return measured[""].value, judged[name], apart, name
