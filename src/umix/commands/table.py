"""``umix table``."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.console import Console

from umix.commands.flags import ReadThreshold
from umix.errors import UserError
from umix.terminal import ERR, OUT, write_out

if TYPE_CHECKING:
    from umix.bench.runs.record import RunRecord
    from umix.reports.tables.text_table import TextTable

Format = Literal["terminal", "markdown", "latex", "csv", "json"]
_SUFFIXES: dict[str, Format] = {".md": "markdown", ".tex": "latex", ".csv": "csv", ".json": "json", ".txt": "terminal"}
_ALL = "all"  # selection rules
_WIDTH = 160  # of a terminal table that is written to a file


def table(
    directory: Annotated[Path, Parameter(help="Folder of runs.")] = Path("runs"),
    *,
    format_: Annotated[
        Format | None, Parameter(name=["--format", "-f"], help="Default: by the suffix of --output, else terminal.")
    ] = None,
    select: Annotated[
        str | None,
        Parameter(
            help="Rule that picks the epoch on validation; worst,average shows both, the paper's table 2; all compares every rule "
            "with an oracle that sees the test split."
        ),
    ] = None,
    threshold: ReadThreshold = None,
    baseline: Annotated[str | None, Parameter(help="Method to compare with, as the table names it.")] = None,
    published: Annotated[
        bool,
        Parameter(
            negative="",
            help="The paper's numbers beside yours, judged as the paper's: by argmax, every group by its own rate.",
        ),
    ] = False,
    groups: Annotated[bool, Parameter(negative="", help="The rate of every group too.")] = False,
    metric: Annotated[
        str | None,
        Parameter(
            help="Another metric than accuracy, by group: balanced_accuracy, macro_f1, log_loss, brier, calibration_error; of a "
            "class, as NAME:CLASS, recall, precision, f1, false_positive_rate, selection_rate, auroc, average_precision; "
            "cost:FN=5,FP=1; demographic_parity_difference, equalized_odds_difference."
        ),
    ] = None,
    target: Annotated[
        float | None,
        Parameter(help="What every group should reach: 0.7 is 70 %. Says who does, and by how much others miss it."),
    ] = None,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"], help="Write to this file.")] = None,
) -> None:
    """Compare the methods run in DIRECTORY: named rates over seeds with intervals, and paired differences to a baseline."""
    from umix.bench.runs.record import known_rule
    from umix.reports.arrange import arrange, threshold_rows
    from umix.reports.comparison import compare
    from umix.reports.regret import as_json as rules_json
    from umix.reports.regret import outcomes, regret_tables
    from umix.reports.tables.comparison_tables import as_csv, as_json, comparison_tables, paper_table, rules_tables
    from umix.reports.tables.metric_tables import metric_csv, metric_json, metric_tables
    from umix.reports.target import known_target, target_table
    from umix.run_folder import is_run_file
    from umix.store import atomic_write

    form = format_ or _format_of(output)
    if output is not None and is_run_file(output):
        raise UserError(f"--output must be no file of a run, got {str(output)!r}; choose another name.")
    in_form = f"the format {form}"
    for flag, is_set, others in (
        ("--groups", groups, {in_form: form in ("csv", "latex") and metric is None}),
        ("--metric", metric, {"--select": select, "--published": published}),
        ("--target", target is not None, {f"--select {_ALL}": select == _ALL, in_form: form in ("csv", "json")}),
        ("--published", published, {"--threshold tuned": threshold == "tuned"}),
        (
            f"--select {_ALL}",
            select == _ALL,
            {"--groups": groups, "--published": published, "--baseline": baseline, in_form: form == "csv"},
        ),
    ):
        for other in [name for name, value in others.items() if is_set and value]:
            raise UserError(f"{flag} must be shown without {other}; leave one out.")
    if target is not None and metric is None:
        known_target(target)
    how = "off" if published else threshold
    console = OUT if output is None else Console(width=_WIDTH, color_system=None)
    runs = arrange([record.by_raw_rates() for record in load(directory)] if published else load(directory))
    if select == _ALL:
        by_rule = outcomes(threshold_rows(runs, threshold=how))
        without = [task for task, methods in runs.items() if not next(iter(methods.values()))[0].groups]
        text = (
            rules_json(by_rule)
            if form == "json"
            else _text(form, console, regret_tables(by_rule, without_groups=without))
        )
    elif metric is not None:
        rows = threshold_rows(runs, threshold=how)
        if form in ("csv", "json"):  # always with all groups
            text = (metric_csv if form == "csv" else metric_json)(rows, metric)
        else:
            text = _text(form, console, metric_tables(rows, metric, groups=groups, target=target))
    else:
        rules: list[str | None] = [*select.split(",")] if select else [None]
        for rule in rules:
            if rule is not None:
                known_rule(rule)
        comparisons = {
            rule or "": compare(threshold_rows(runs, select=rule, threshold=how), select=rule, baseline=baseline)
            for rule in rules
        }
        for note in dict.fromkeys(note for comparison in comparisons.values() for note in comparison.notes):
            ERR.print(f"note: {note}", highlight=False, markup=False)
        first = next(iter(comparisons.values()))
        if form in ("csv", "json"):  # with the rows of all selection rules
            text = (as_csv if form == "csv" else as_json)(list(comparisons.values()), with_published=published)
        elif len(rules) > 1:
            text = _text(form, console, rules_tables(comparisons, with_published=published))
        elif form == "latex":
            text = _text(form, console, [paper_table(first, with_published=published)])
        else:
            text = _text(form, console, comparison_tables(first, with_published=published, groups=groups))
    if target is not None and metric is None:
        chosen = select.split(",")[0] if select else None
        by_target = threshold_rows(runs, select=chosen, threshold=how)
        text += _text(
            form, console, [target_table(task, one, target, select=chosen) for task, one in by_target.items()]
        )
    if output is None:
        write_out(text)
        return
    atomic_write(output, text.encode())
    ERR.print(f"{form} table written to {output}", highlight=False, markup=False, soft_wrap=True)


def _format_of(output: Path | None) -> Format:
    """The format by the suffix of the file; terminal if there is no file."""
    if output is None:
        return "terminal"
    if output.is_dir():
        raise UserError(f"--output must be a file, got the folder {str(output)!r}.")
    if output.suffix not in _SUFFIXES:
        *others, last = _SUFFIXES
        raise UserError(
            f"--output must end in {', '.join(others)} or {last}, got {str(output)!r}; for any other name give --format too."
        )
    return _SUFFIXES[output.suffix]


def _text(form: Format, console: Console, tables: "Sequence[TextTable]") -> str:
    """The tables as text for people: Markdown, LaTeX, or what a terminal shows."""
    from umix.reports.tables.text_table import latex, markdown, terminal

    if form == "markdown":
        return markdown(tables)
    if form == "latex":
        return "\n".join(map(latex, tables))
    with console.capture() as capture:
        for text_table in tables:
            console.print(terminal(text_table))
    return capture.get()


def load(directory: Path) -> "list[RunRecord]":
    """The records in ``directory``; prints what was skipped, and raises UserError if there is no record."""
    from umix.bench.runs.failure import load_failures
    from umix.bench.runs.record import load_runs

    runs = load_runs(directory)
    for message in runs.skipped:
        ERR.print(f"skipped: {message}", highlight=False, markup=False, soft_wrap=True)
    for failure in filter(None, load_failures(directory).values()):
        run = f"{Path(failure.task).name} · {failure.method} · seed {failure.seed}"
        ERR.print(f"failed: {run}: {failure.sentence}", highlight=False, markup=False, soft_wrap=True)
    if not runs.records:
        raise UserError(f"There is no finished run in {directory}; make some with umix run --out {directory}.")
    return runs.records
