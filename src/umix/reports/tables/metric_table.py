"""One metric of several methods: over all test examples, of the worst judged group, and the difference between groups."""

import math
from collections.abc import Mapping, Sequence

from umix.bench.runs.example_tables import group_column, named_frame, read_held_out
from umix.bench.runs.record import RunRecord
from umix.core.statistics import Spread
from umix.reports.comparison import different_fits, over_seeds
from umix.reports.metrics import DIFFERENCES, Metric, by_group, difference
from umix.reports.tables.text_table import Entry, TextTable, marked, percent

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
        rows = [_measured(record, metric, by) for record in records]
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
            Entry(str(len(records))),
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


def _measured(record: RunRecord, metric: Metric, by: Sequence[str]) -> tuple[float, float, float, str]:
    """The metric over all, of the worst judged group, the largest difference, and the name of the worst group."""
    frame = named_frame(record, read_held_out(record), "test")
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
