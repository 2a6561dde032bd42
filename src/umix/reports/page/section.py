"""Everything a report says of one task, as plain data: the page only draws it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

from umix.bench.evaluation.evaluated import Importance
from umix.bench.runs.folds import seed_summaries
from umix.bench.runs.record import RunRecord
from umix.bench.runs.unit_titles import unit_titles
from umix.errors import Setting, UserError
from umix.reports.arrange import Arranged
from umix.reports.charts.curves import Panel, counted_rates, curve_rows, curves, panels
from umix.reports.charts.figure import Figure, file_name
from umix.reports.charts.palette import group_colours, method_colours
from umix.reports.charts.rates import group_dots, group_order, group_rows, tradeoff, tradeoff_rows
from umix.reports.charts.selection import SelectionView, selection_views
from umix.reports.comparison import MethodRates, compare, default_baseline
from umix.reports.page.details import Details, details, uncertainty_order
from umix.reports.page.group_errors import GroupErrors, group_errors
from umix.reports.page.headline import Headline, headline
from umix.reports.page.held_out import HeldOut, held_out
from umix.reports.page.threshold import ThresholdView, threshold_view
from umix.reports.predictions import Predictions, load_predictions
from umix.reports.sentences import calibration_words
from umix.reports.tables.comparison_tables import cautions, groups_table
from umix.reports.tables.evaluation_tables import importance_table
from umix.reports.tables.text_table import TextTable
from umix.reports.target import TargetCheck, check_target, target_table
from umix.reports.training_examples import Training, training_of
from umix.run_folder import IMPORTANCE
from umix.store import read_json

_COLUMNS = 20  # inputs that are shown


@final
@dataclass(frozen=True, eq=False)
class Section:
    """One task: its headline, the figures of the comparison and of the epochs, and the details of one run where it has any."""

    task: str
    records: Sequence[RunRecord]
    headline: Headline
    baseline: str | None
    results: Sequence[Figure]
    selections: Sequence[SelectionView]  # what runs tried on validation before they were trained
    epochs: Sequence[Figure]
    details: Details | None
    held_out: HeldOut | None
    errors: GroupErrors | None
    methods: Mapping[str, MethodRates]  # the best worst group first
    groups: TextTable | None  # the rate of every group, each group column alone first
    importance: TextTable | None  # which inputs matter, where ``umix evaluate`` has found it
    columns: Sequence[str]  # the group columns, where there are several
    threshold: ThresholdView | None
    calibration: str  # whether the headline's probabilities are calibrated, in words
    select: str
    thresholds: str  # which rows have a threshold chosen on validation
    warnings: Sequence[tuple[str, str]]  # who warns, and of what
    target: tuple[TargetCheck, TextTable] | None  # of the headline's run, and of all methods

    @property
    def folder(self) -> str:
        """The task as the name of a folder."""
        return file_name(self.task)

    @property
    def figures(self) -> list[Figure]:
        """All figures in the order of the page."""
        errors = self.errors.figures if self.errors else ()
        selections = [one.figure for one in self.selections]
        return [*self.results, *errors, *selections, *self.epochs, *(self.details.figures if self.details else ())]


def sections(
    runs: Arranged, *, select: str | None = None, baseline: str | None = None, target: float | None = None
) -> list[Section]:
    """A section for every task in ``runs`` that has a score under the rule ``select``; where none has, it is refused.

    ``runs`` are rows of ``threshold_rows``.
    """
    found = []
    for task, methods in runs.items():
        scored = {
            label: [run for run in records if select is None or run.has(select)] for label, records in methods.items()
        }
        left_out = [
            (label, f"Left out: no score under the rule {select}.") for label, records in scored.items() if not records
        ]
        if len(left_out) < len(scored):
            kept = {label: records for label, records in scored.items() if records}
            found.append(_section(task, kept, select, baseline, left_out, target))
    if not found:
        raise UserError(
            Setting("select", f"{select}"), " must have a score in some run, but no run here has one; try average."
        )
    return found


def _section(
    task: str,
    by_label: dict[str, list[RunRecord]],
    select: str | None,
    named: str | None,
    left_out: list[tuple[str, str]],
    target: float | None,
) -> Section:
    baseline = named if named in by_label else default_baseline(by_label)
    runs = dict(sorted(by_label.items(), key=lambda item: item[0] != baseline))
    said = headline(runs, select=select, baseline=baseline)
    first = next(iter(runs.values()))[0]
    names = first.groups or first.classes
    rows = group_rows(runs, select)
    order = group_order(rows, baseline or said.method)
    of_methods = method_colours(list(runs), first=said.method)
    of_groups = group_colours(names, order.judged or order.small)
    titles = unit_titles(first) if first.groups else {}
    titled = [{**row, "group": titles.get(row["group"], row["group"])} for row in rows]
    results = [group_dots(titled, of_methods, kind=said.kind, baseline=baseline or said.method)]
    if len(runs) > 1:
        results.append(tradeoff(tradeoff_rows(runs, select), of_methods, kind=said.kind))
    chosen = _detailed(runs, said.method)
    pair = list(dict.fromkeys([*([baseline] if baseline else []), said.method]))
    epochs = _curves({label: runs[label][0] for label in pair}, select, of_groups)
    epochs += _train_curves(*chosen, of_groups) if chosen else []
    trained = _trained(runs)
    warnings = [
        (f"{label}, {record.words}", warning)
        for label, records in trained.items()
        for record in records
        for warning in record.warnings
    ]
    comparison = compare({task: runs}, select=select, baseline=baseline)
    shown = runs[said.method][0]
    predictions, summary = _headline_predictions(shown, select), shown.summary(select)
    return Section(
        task=task,
        records=[record for records in trained.values() for record in records],
        headline=said,
        baseline=baseline,
        results=results,
        selections=selection_views(trained),
        epochs=epochs,
        details=None if chosen is None else details(*chosen, of_groups),
        held_out=_held_out(runs, said.method, baseline),
        errors=None if predictions is None else group_errors(shown, predictions, threshold=summary.threshold),
        methods=comparison.ranked(task),
        groups=groups_table(comparison, task) if first.groups else None,
        importance=_importance(shown, select),
        columns=list(dict.fromkeys(margin.column for margin in first.margins)),
        threshold=_threshold(shown, predictions, summary.threshold),
        calibration=calibration_words(shown, summary),
        select=first.rule(select),
        thresholds=_threshold_words(comparison.ranked(task)),
        warnings=_gathered(
            [("Comparison", caution) for caution in cautions(comparison.ranked(task), baseline)] + left_out + warnings
        ),
        target=None
        if target is None
        else (
            check_target(shown, next(iter(seed_summaries(runs[said.method], select).values())), target),
            target_table(task, runs, target, select=select),
        ),
    )


def _trained(runs: Mapping[str, Sequence[RunRecord]]) -> dict[str, list[RunRecord]]:
    """The runs without rows that show runs of another row again, with another threshold."""
    seen: set[str] = set()
    trained = {}
    for label, records in runs.items():
        trained[label] = [record for record in records if record.key not in seen]
        seen |= {record.key for record in records}
    return trained


def _threshold_words(methods: Mapping[str, MethodRates]) -> str:
    """Which methods have a threshold chosen on validation, in a sentence; empty where none has."""
    chosen = [label for label, rates in methods.items() if rates.threshold == "tuned"]
    usual = [label for label in methods if label not in chosen]
    if not chosen:
        return ""
    others = f"; {', '.join(usual)}: the most likely class" if usual else ""
    return f"Threshold chosen on validation: {', '.join(chosen)}{others}."


def _headline_predictions(record: RunRecord, select: str | None) -> Predictions | None:
    """The predictions that the run keeps, if they are those of the headline."""
    return load_predictions(record) if record.choice(select) == record.choice() else None


def _threshold(record: RunRecord, predictions: Predictions | None, chosen: float | None) -> ThresholdView | None:
    """The rates of a run's groups at any threshold; None unless it has two classes and kept the predictions of the headline."""
    if predictions is None or chosen is None:
        return None
    return threshold_view(record, predictions, chosen=chosen)


def _importance(record: RunRecord, select: str | None) -> TextTable | None:
    """Which inputs matter, if ``umix evaluate`` was asked and the page shows the same epoch and threshold of the run."""
    path = record.directory / IMPORTANCE
    if not path.exists() or record.choice(select) != record.choice(threshold=record.own_threshold):
        return None
    return importance_table(record, read_json(path, Importance, kind="importance of columns"), most=_COLUMNS)


def _detailed(runs: dict[str, list[RunRecord]], preferred: str) -> tuple[str, RunRecord, Training] | None:
    """The run whose training examples are shown: of UMIX if there is one, else of the preferred method, else of another."""
    for label in uncertainty_order(runs, preferred):
        for record in runs[label][:1]:
            training = training_of(record)
            if training is not None:
                return label, record, training
    return None


def _held_out(runs: dict[str, list[RunRecord]], method: str, baseline: str | None) -> HeldOut | None:
    """What the first run of ``method`` predicts for held-out examples, compared with the baseline's run of the same seed."""
    record = runs[method][0]
    predictions = load_predictions(record)
    if predictions is None:
        return None
    same_seed = [] if baseline is None or baseline == method else [r for r in runs[baseline] if r.words == record.words]
    against = load_predictions(same_seed[0]) if same_seed else None
    found = held_out(method, record, predictions, None if against is None else (str(baseline), against))
    return found if record.fold is None else replace(found, price=None)  # of one fold, beside a headline of all


def _train_curves(label: str, record: RunRecord, training: Training, of_groups: dict[str, str]) -> list[Figure]:
    rates = training.rates()
    if rates is None or not record.groups:
        return []
    rows = curve_rows(record.groups, rates)
    title = "Training: ERM in the first stage"
    axis = "training accuracy, percent"
    return [curves(Panel("epochs-train", title, rows, axis, len(record.groups)), of_groups)] if rows else []


def _curves(compared: Mapping[str, RunRecord], select: str | None, of_groups: dict[str, str]) -> list[Figure]:
    """Validation accuracy over the epochs of the final fit: the runs side by side, with equal axes."""
    compared_panels = []
    for label, record in compared.items():
        choice = record.choice(select)
        names, rates = counted_rates(record, "val", choice.threshold)
        panel = Panel(
            name=f"epochs-val-{file_name(label)}",
            title=f"Validation: {label}, {record.words}{', with the chosen threshold' if choice.threshold else ''}",
            rows=curve_rows(names, rates),
            axis="validation accuracy, percent",
            n_groups=len(names),
            selected=choice.epoch + 1,
            rule=record.rule(select),
        )
        compared_panels.append(panel)
    return panels(compared_panels, of_groups)


def _gathered(warnings: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Each warning once, with all who warn of it."""
    about: dict[str, list[str]] = {}
    for who, warning in warnings:
        about.setdefault(warning, []).append(who)
    return [("; ".join(who), warning) for warning, who in about.items()]
