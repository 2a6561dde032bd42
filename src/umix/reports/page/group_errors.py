"""What the first run of the chosen method predicts for the test examples of every group: confusion, ROC and calibration."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from umix.bench.runs.record import RunRecord
from umix.bench.runs.unit_titles import class_title
from umix.reports.charts.figure import Figure
from umix.reports.charts.palette import group_colours
from umix.reports.charts.probabilities import calibration_chart, calibration_rows, roc_chart, roc_rows
from umix.reports.metrics import CALIBRATED, DRAWS, Metric, measure
from umix.reports.page.threshold import OVERALL
from umix.reports.predictions import Predictions, attribute_groups
from umix.reports.tables.text_table import Entry, TextTable

_MOST_GROUPS = 24
_MOST_CLASSES = 10  # with more, the table of a group would be wider than a page


@final
@dataclass(frozen=True)
class ConfusionRow:
    """The test examples of a group that have one label: how many of them are predicted as each class."""

    group: str
    label: str
    counts: tuple[int, ...]

    @property
    def size(self) -> int:
        return sum(self.counts)


@final
@dataclass(frozen=True, eq=False)
class GroupErrors:
    """Errors of one run by group, whatever the label; a group is a combination of values of the group columns."""

    record: RunRecord
    confusion: Sequence[ConfusionRow]
    metrics: TextTable | None  # None where probabilities are not kept
    figures: Sequence[Figure]
    left_out: int  # groups with too few test examples


def group_errors(record: RunRecord, predictions: Predictions, *, threshold: float | None) -> GroupErrors | None:
    """The errors of the test examples among ``predictions``; None where there are none.

    ``threshold`` is that of two classes. Groups with fewer test examples than the run's ``min_group`` are left out; of many groups
    the least accurate are shown.
    """
    test = predictions.of("test")
    if not test.n:
        return None
    members = attribute_groups(record, test)
    large = {name: inside for name, inside in members.items() if inside.sum() >= max(1, record.min_group)}
    worst = sorted(large, key=lambda name: -float(test.wrong[large[name]].mean()))
    groups = {name: large[name] for name in worst[:_MOST_GROUPS]}
    everything = {OVERALL: np.ones(test.n, dtype=bool)}
    return GroupErrors(
        record=record,
        confusion=_confusion(record, test, {**everything, **groups}),
        metrics=_metrics(record, test, {**everything, **groups}),
        figures=_figures(record, test, groups or everything, threshold),
        left_out=sum(bool(inside.any()) for inside in members.values()) - len(large),
    )


def _confusion(record: RunRecord, test: Predictions, groups: Mapping[str, np.ndarray]) -> list[ConfusionRow]:
    from sklearn.metrics import confusion_matrix

    classes = range(len(record.classes))
    if len(classes) > _MOST_CLASSES:
        return []
    return [
        ConfusionRow(name, record.classes[label], tuple(counts))
        for name, inside in groups.items()
        for label, counts in enumerate(
            confusion_matrix(test.label[inside], test.prediction[inside], labels=classes).tolist()
        )
        if any(counts)
    ]


def _metrics(record: RunRecord, test: Predictions, groups: Mapping[str, np.ndarray]) -> TextTable | None:
    """Metrics of every group with intervals; those that calibration changes before and after it."""
    if test.probability is None or not np.isfinite(test.probability).all() or len(record.classes) < 2:
        return None
    positive, choice = record.classes[1], record.choice()
    of_two = [Metric("f1", positive), Metric("average_precision", positive)] if len(record.classes) == 2 else []
    metrics = [Metric("balanced_accuracy"), *(of_two or [Metric("macro_f1")]), *map(Metric, CALIBRATED)]
    names, after = np.array(record.classes), test.probability
    raw = record.calibration(choice).uncalibrated(after) if choice.epoch in record.calibrations else None

    def cell(metric: Metric, inside: np.ndarray, p: np.ndarray, draws: int = DRAWS) -> Entry:
        by_class = {str(name): p[inside, k] for k, name in enumerate(names)}
        measured = measure(metric, names[test.label[inside]], names[test.prediction[inside]], by_class, draws=draws)
        return Entry(metric.text(measured.value, measured.interval))

    header, rows = ["group", "n"], [[Entry(name), Entry(f"{inside.sum():,}")] for name, inside in groups.items()]
    for metric in metrics:
        title, slow = str(metric).replace("_", " "), metric.name == "average_precision"
        if raw is not None and metric.name in CALIBRATED:
            header.append(f"{title}, before")
            for row, inside in zip(rows, groups.values(), strict=True):
                row.append(cell(metric, inside, raw, draws=0))
        header.append(title)
        for row, inside in zip(rows, groups.values(), strict=True):
            row.append(cell(metric, inside, after, draws=0 if slow else DRAWS))
    notes = ["In percent, log loss in nats; in brackets 95 % intervals."]
    notes += ["Before: with the probabilities that the model gives by itself, without calibration."] * (raw is not None)
    return TextTable("Metrics of every group", header, rows, notes)


def _figures(
    record: RunRecord, test: Predictions, groups: Mapping[str, np.ndarray], threshold: float | None
) -> list[Figure]:
    if not np.isfinite(test.confidence).all():  # a net that diverged has no probabilities
        return []
    colours = group_colours(list(groups), worst=list(groups))
    if len(record.classes) != 2 or test.probability is None or threshold is None:
        return [calibration_chart(calibration_rows(test, groups), colours, positive=None)]
    positive, curves = class_title(record, record.classes[1]), roc_rows(test, groups)
    return [
        *([roc_chart(curves, colours, positive=positive, threshold=threshold)] if curves else []),
        calibration_chart(calibration_rows(test, groups), colours, positive=positive),
    ]
