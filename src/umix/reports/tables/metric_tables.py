"""Tables of one metric over methods and seeds: of all test examples, of the worst group, and of every group."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from umix.bench.runs.example_tables import group_column, named_frame, read_held_out
from umix.bench.runs.folds import by_seed
from umix.bench.runs.record import RunRecord
from umix.core.statistics import Interval, Spread
from umix.reports.comparison import different_fits, over_seeds
from umix.reports.metrics import CALIBRATED, DIFFERENCES, Measured, Metric, by_group, difference, uncalibrated
from umix.reports.tables.text_table import Entry, TextTable, marked
from umix.reports.target import known_target

Runs = Mapping[str, Mapping[str, Sequence[RunRecord]]]
_ALL = "all"


@final
@dataclass(frozen=True)
class _MeasuredRun:
    """The metric of one run by group, all examples as ``""``, before calibration too, and the largest difference of groups."""

    groups: Mapping[str, Measured]
    before: Mapping[str, Measured]
    apart: float
    worst: str | None  # of the judged groups


def metric_tables(runs: Runs, text: str, *, groups: bool = False, target: float | None = None) -> list[TextTable]:
    """A table of the metric ``text`` (``recall:yes``) for every task, and with ``groups`` one of every group with intervals.

    Groups are the values of all group columns together. ``target`` is what the worst judged group is compared with.
    """
    tables = []
    for task, methods in runs.items():
        metric, by = _metric(methods, text)
        if target is not None and metric.is_share:
            known_target(target)
        measured = _measured_runs(methods, metric, by, intervals=groups)
        tables.append(_metric_table(task, methods, metric, by, measured, target))
        if groups and metric.name not in DIFFERENCES:
            tables.append(_groups_table(task, methods, metric, measured))
    return tables


def metric_rows(runs: Runs, text: str) -> list[dict[str, Any]]:
    """A row for every task, method and group, the first of each over all examples: mean over seeds, deviation, interval."""
    rows = []
    for task, methods in runs.items():
        metric, by = _metric(methods, text)
        measured = _measured_runs(methods, metric, by, intervals=True)
        for row in _group_rows(methods, metric, measured):
            numbers = {name: round(one, 6) if isinstance(one, float) else one for name, one in row.items()}
            rows.append({"task": task, "metric": str(metric), **numbers})
    return rows


def metric_json(runs: Runs, text: str) -> str:
    """The rows as JSON."""
    return json.dumps({"rows": metric_rows(runs, text)}, indent=1, ensure_ascii=False) + "\n"


def metric_csv(runs: Runs, text: str) -> str:
    """The rows as CSV."""
    import polars

    return polars.DataFrame(metric_rows(runs, text), infer_schema_length=None).write_csv()


def _metric(methods: Mapping[str, Sequence[RunRecord]], text: str) -> tuple[Metric, list[str]]:
    """The metric that ``text`` names, and the columns of a frame that make the groups."""
    first = next(iter(methods.values()))[0]
    return Metric.parse(text, first.classes), [group_column(name) for name in first.group_columns[1:]]


def _metric_table(
    task: str,
    methods: Mapping[str, Sequence[RunRecord]],
    metric: Metric,
    by: Sequence[str],
    measured: Mapping[str, Sequence[_MeasuredRun]],
    target: float | None,
) -> TextTable:
    header = ["method", "seeds", "all", "worst judged group", "which", "largest difference"]
    columns: dict[str, list[Spread]] = {"all": [], "worst": [], "apart": [], "all before": [], "worst before": []}
    for label, records in methods.items():
        runs, fits = measured[label], different_fits(records)
        columns["all"].append(_spread(runs, "", fits))
        columns["worst"].append(over_seeds([_value(run.groups, run.worst) for run in runs], fits))
        columns["apart"].append(over_seeds([run.apart for run in runs], fits))
        columns["all before"].append(over_seeds([_value(run.before, "") for run in runs], fits))
        columns["worst before"].append(over_seeds([_value(run.before, run.worst) for run in runs], fits))
    entries = {name: [Entry(_text(metric, one)) for one in spreads] for name, spreads in columns.items()}
    if not metric.low_is_good and metric.is_share:
        entries |= {name: marked(columns[name]) for name in ("all", "worst")}
    names = ["; ".join(dict.fromkeys(run.worst or "–" for run in measured[label])) for label in methods]
    shown = [*(entries[name] for name in ("all", "worst")), [Entry(name) for name in names], entries["apart"]]
    calibrated = any(not math.isnan(one.mean) for one in columns["all before"])
    if calibrated:
        header += ["all, before calibration", "that group, before"]
        shown += [entries["all before"], entries["worst before"]]
    if target is not None:
        header.append(f"target {_text(metric, Spread(target, math.nan))}")
        shown.append([Entry(_against(metric, one.mean, target)) for one in columns["worst"]])
    rows = [
        [Entry(label), Entry(str(len(measured[label]))), *(column[k] for column in shown)]
        for k, label in enumerate(methods)
    ]
    first = next(iter(methods.values()))[0]
    notes = [
        f"{metric} of the selected net on test{_unit(metric)}, mean ± standard deviation over seeds. Groups: "
        f"{' × '.join(by) or 'none'}, judged from {first.min_group} examples on. Largest difference: between two judged groups."
    ]
    notes += ["Before calibration: with the probabilities that the model gives by itself."] * calibrated
    if metric.name in CALIBRATED and not calibrated:
        notes.append("No run here has calibrated its probabilities.")
    return TextTable(f"{task}: {metric}", header, rows, notes)


def _group_rows(
    methods: Mapping[str, Sequence[RunRecord]], metric: Metric, measured: Mapping[str, Sequence[_MeasuredRun]]
) -> list[dict[str, Any]]:
    """Group and method of every row, how many examples the group has, and the numbers over seeds; None for what is not known."""
    rows = []
    names = dict.fromkeys(
        name for runs in measured.values() for run in runs for name in run.groups
    )  # splits may differ
    for name in names or [""]:
        for label, records in methods.items():
            runs, fits = measured[label], different_fits(records)
            value, here = _spread(runs, name, fits), [run.groups[name] for run in runs if name in run.groups]
            if metric.name in DIFFERENCES:
                value = over_seeds([run.apart for run in runs], fits)
            low, high = (Spread.of([getattr(one.interval, end) for one in here]).mean for end in ("low", "high"))
            before = over_seeds([_value(run.before, name) for run in runs], fits).mean
            row = {"group": name or _ALL, "method": label, "n_seeds": len(runs), "n": here[0].size if here else None}
            numbers = {"value": value.mean, "std": value.std, "low": low, "high": high, "before_calibration": before}
            rows.append(row | {key: None if math.isnan(number) else number for key, number in numbers.items()})
    return rows


def _groups_table(
    task: str,
    methods: Mapping[str, Sequence[RunRecord]],
    metric: Metric,
    measured: Mapping[str, Sequence[_MeasuredRun]],
) -> TextTable:
    """A row for every group and method: value, interval, and the value before calibration where there was one."""
    rows, least = _group_rows(methods, metric, measured), next(iter(methods.values()))[0].min_group
    header = ["group", "method", "n", metric.name, "before calibration"]
    entries = []
    for row in rows:
        group = row["group"] if (row["n"] or 0) >= least else f"({row['group']})"
        shown = "–"
        if row["value"] is not None:
            ends = None if row["low"] is None else Interval(row["low"], row["high"])
            shown = metric.text(row["value"], ends)
        before = "–" if row["before_calibration"] is None else metric.text(row["before_calibration"])
        entries.append([Entry(text) for text in (group, row["method"], f"{row['n'] or 0:,}", shown, before)])
    last = None if any(row["before_calibration"] is not None for row in rows) else -1
    notes = ["In brackets the 95 % interval within a run (Wilson's for shares, else bootstrap), averaged over seeds."]
    return TextTable(f"{task}: {metric} of the groups", header[:last], [one[:last] for one in entries], notes)


def _unit(metric: Metric) -> str:
    if metric.is_share:
        return " in percent"
    return " per example" if metric.name == "cost" else ", in nats"


def _against(metric: Metric, worst: float, target: float) -> str:
    """Whether ``worst`` reaches the ``target``, and by how much it is missed."""
    short = worst - target if metric.low_is_good else target - worst
    if math.isnan(short):
        return "–"
    return "met" if short <= 0 else f"missed by {metric.text(short)}"


def _text(metric: Metric, spread: Spread) -> str:
    return metric.text(spread.mean) + ("" if math.isnan(spread.std) else f" ± {metric.text(spread.std)}")


def _spread(runs: Sequence[_MeasuredRun], name: str, fits: int) -> Spread:
    return over_seeds([_value(run.groups, name) for run in runs], fits)


def _value(groups: Mapping[str, Measured], name: str | None) -> float:
    """The value of the group ``name``; NaN where there is none."""
    return groups[name].value if name is not None and name in groups else math.nan


def _measured_runs(
    methods: Mapping[str, Sequence[RunRecord]], metric: Metric, by: Sequence[str], *, intervals: bool
) -> dict[str, list[_MeasuredRun]]:
    return {
        label: [_measured(folds, metric, by, intervals=intervals) for folds in by_seed(records).values()]
        for label, records in methods.items()
    }


def _measured(folds: Sequence[RunRecord], metric: Metric, by: Sequence[str], *, intervals: bool) -> _MeasuredRun:
    """The metric over all test rows of a run; bootstrap intervals take long, so they are drawn only if they are shown."""
    import polars

    record, frames = folds[0], [named_frame(fold, read_held_out(fold), "test") for fold in folds]
    frame = polars.concat(frames)
    apart = difference(frame, metric, record.classes, by, min_group=record.min_group) if by else math.nan
    if metric.name in DIFFERENCES:
        return _MeasuredRun({}, {}, apart, None)
    more = {} if intervals else {"draws": 0}
    groups = by_group(frame, metric, record.classes, by, **more)
    raw = [uncalibrated(*one) for one in zip(folds, frames, strict=True)] if metric.name in CALIBRATED else []
    parts = [one for one in raw if one is not None]
    before = by_group(polars.concat(parts), metric, record.classes, by, draws=0) if len(parts) == len(folds) else {}
    judged = {
        name: one.value
        for name, one in groups.items()
        if name and one.size >= record.min_group and not math.isnan(one.value)
    }
    worst = (max if metric.low_is_good else min)(judged, key=judged.__getitem__) if judged else None
    return _MeasuredRun(groups, before, apart, worst)
