"""What ``umix bench`` shows: the plan, a live table of method × seed while runs are executed, and the results."""

from collections import Counter
from types import TracebackType
from typing import TYPE_CHECKING, Self, final

from rich.console import Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from umix.commands.execution import run_json
from umix.core.words import counted
from umix.terminal import ERR, OUT, print_json

if TYPE_CHECKING:
    from umix.api.study import StudyResult
    from umix.bench.executors.executor import Event, Outcome
    from umix.bench.runs.record import RunRecord
    from umix.bench.study.study_plan import State, StudyEntry, StudyPlan

_REMARKS: dict["State", str] = {"failed": "failed before", "partly": "begun", "running": "running elsewhere"}
_MOST_SEEDS = 12  # with more seeds, the table shows counts instead of a column per seed


def plan_table(plan: "StudyPlan") -> Table:
    """A row per task and method: how many runs are done and to run."""
    table = Table(title=f"Plan: {headline(plan)}", title_justify="left")
    for name in ("task", "method", "runs", "done", "to run", "of those to run"):
        table.add_column(name, justify="right" if name in ("runs", "done", "to run") else "left")
    rows: dict[tuple[str, str], list[StudyEntry]] = {}
    for entry in plan.grid.entries:
        rows.setdefault((entry.task, entry.label), []).append(entry)
    for (task, label), entries in rows.items():
        unfinished = [entry for entry in entries if plan.states[entry.key] != "done"]
        numbers = (str(len(entries)), str(len(entries) - len(unfinished)), str(len(unfinished)))
        table.add_row(escape(task), escape(label), *numbers, _remarks(plan, unfinished))
    unfinished = plan.to_run
    numbers = (str(len(plan.states)), str(len(plan.states) - len(unfinished)), str(len(unfinished)))
    table.add_section()
    table.add_row("all", "", *numbers, "")
    return table


def headline(plan: "StudyPlan") -> str:
    """The number of runs and the seeds of a study, as text."""
    seeds = sorted({entry.spec.seed for entry in plan.grid.entries})
    listed = ", ".join(map(str, seeds)) if len(seeds) <= 10 else f"{seeds[0]} … {seeds[-1]}"
    duplicates = len(plan.grid.entries) - len(plan.states)
    note = f"; cells that are the same run as another: {duplicates}" if duplicates else ""
    return f"{counted(len(plan.states), 'run')}, {'seed' if len(seeds) == 1 else 'seeds'} {listed}{note}"


def _remarks(plan: "StudyPlan", entries: "list[StudyEntry]") -> str:
    count = Counter(plan.states[entry.key] for entry in entries)
    return ", ".join(f"{count[state]} {remark}" for state, remark in _REMARKS.items() if count[state])


@final
class LiveTable:
    """Receives events and outcomes of runs and shows the state of every run.

    Without a terminal it prints a line per run; with ``quiet`` it shows nothing.
    """

    def __init__(self, plan: "StudyPlan", *, quiet: bool) -> None:
        self._plan = plan
        self._quiet = quiet
        self._entries: dict[str, StudyEntry] = {entry.key: entry for entry in reversed(plan.grid.entries)}
        self._cells: dict[str, str] = dict.fromkeys(plan.states, "[dim]·[/dim]")
        self._rates: dict[str, float | None] = {}
        self._ended: set[str] = set()
        self._total = len(plan.states)
        self._bar = Progress(
            BarColumn(),
            TextColumn("{task.completed} of {task.total} runs ended,"),
            TimeElapsedColumn(),
            TextColumn("passed, left:"),
            TimeRemainingColumn(),
            console=ERR,
        )
        self._runs = self._bar.add_task("", total=self._total)
        self._live = Live(
            get_renderable=self._render, console=ERR, refresh_per_second=4, transient=True, auto_refresh=True
        )
        self._drawn = ERR.is_terminal and not quiet

    def __enter__(self) -> Self:
        if self._drawn:
            self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn:
            self._live.stop()

    def finished(self, record: "RunRecord") -> None:
        """A run of the study was finished before."""
        self._show_rate(record)

    def on_event(self, event: "Event") -> None:
        """A run has begun a stage, made steps, or has a message."""
        if event.key not in self._entries:
            return
        if event.kind == "note":
            if not self._quiet:
                ERR.print(escape(f"{self._name(event.key)}: {event.message}"), highlight=False, soft_wrap=True)
            return
        share = 100 * event.done / event.total if event.total else 0
        self._cells[event.key] = f"[cyan]{escape(event.stage)} {share:.0f}%[/cyan]"

    def on_outcome(self, outcome: "Outcome") -> None:
        """A run has ended."""
        result = ""
        if outcome.record is not None:
            self._show_rate(outcome.record)
            rate = self._rates[outcome.key]
            result = f"worst {100 * rate:.1f}" if rate is not None else "done"
        elif outcome.failure is not None:
            self._cells[outcome.key] = "[red]failed[/red]"
            self._end(outcome.key)
            result = f"failed: {outcome.failure.sentence}"
        if self._quiet or self._drawn:
            return
        line = f"[{len(self._ended)}/{self._total}] {self._name(outcome.key)}: {result} ({outcome.seconds:.1f} s)"
        ERR.print(line, markup=False, highlight=False, soft_wrap=True)

    def _show_rate(self, record: "RunRecord") -> None:
        from umix.reports.arrange import plain_row

        summary = plain_row(record).summary()
        class_rates = [one.rate for one in summary.classes.values() if one.rate is not None]
        rate = summary.worst if record.groups else min(class_rates, default=None)
        self._rates[record.key] = rate
        self._cells[record.key] = "done" if rate is None else f"{100 * rate:.1f}"
        self._end(record.key)

    def _end(self, key: str) -> None:
        self._ended.add(key)
        self._bar.update(self._runs, completed=len(self._ended))

    def _name(self, key: str) -> str:
        entry = self._entries[key]
        return f"{entry.task} · {entry.label} · {entry.spec.words}"

    def _render(self) -> RenderableType:
        rows: dict[tuple[str, str], list[StudyEntry]] = {}
        for entry in self._plan.grid.entries:
            rows.setdefault((entry.task, entry.label), []).append(entry)
        places = list(dict.fromkeys(entry.spec.words for entry in self._plan.grid.entries))
        wide = len(places) <= _MOST_SEEDS
        table = Table("task", "method", *(places if wide else ["ended", "worst so far"]))
        for (task, label), entries in rows.items():
            if wide:
                cells = {entry.spec.words: self._cells[entry.key] for entry in entries}
                values = [cells.get(place, "") for place in places]
            else:
                rates = [rate for entry in entries if (rate := self._rates.get(entry.key)) is not None]
                mean = f"{100 * sum(rates) / len(rates):.1f}" if rates else ""
                values = [f"{sum(entry.key in self._ended for entry in entries)}/{len(entries)}", mean]
            table.add_row(escape(task), escape(label), *values)
        return Group(table, self._bar, Text("Rates: worst test group (or class) in percent.", style="dim"))


def print_results(result: "StudyResult") -> None:
    """Print warnings, a comparison per task, failed runs, and commands that show more."""
    for label, warning in _warnings(result):
        ERR.print(f"[yellow]warning:[/yellow] {escape(label)}: {escape(warning)}", highlight=False, soft_wrap=True)
    if result.records:
        table = result.table()
        for note in table.comparison.notes:
            ERR.print(f"note: {note}", highlight=False, markup=False, soft_wrap=True)
        OUT.print(table.renderable())
    for name, failure in result.failures.items():
        OUT.print(f"[red]failed:[/red] {escape(name)}: {escape(failure.sentence)}", highlight=False, soft_wrap=True)
    if result.failures:
        message = "The same command tries failed runs again; failed.json in a run's folder has the whole error."
        OUT.print(message, highlight=False, soft_wrap=True)
    out = result.plan.grid.paths.out
    message = f"Records: {out}/ (one folder per run). More: umix table {out} --groups; umix table {out} --select all"
    OUT.print(message, highlight=False, markup=False, soft_wrap=True)


def _warnings(result: "StudyResult") -> list[tuple[str, str]]:
    """Every warning once per task, with the methods and seeds that it is about."""
    about: dict[tuple[str, str], dict[str, dict[int, None]]] = {}
    for task, methods in result.records.items():
        for label, records in methods.items():
            for record in records:
                for warning in record.warnings:
                    about.setdefault((task, warning), {}).setdefault(label, {})[record.seed] = None
    lines = []
    for (task, warning), by_method in about.items():
        if len(by_method) > 1 and by_method.keys() == result.records[task].keys():
            lines.append((f"{task} · all methods", warning))
            continue
        for label, seeds in by_method.items():
            lines.append((f"{task} · {label} · seed {', '.join(map(str, seeds))}", warning))
    return lines


def print_study_json(result: "StudyResult") -> None:
    """Print all runs and failures as JSON."""
    from umix.reports.arrange import threshold_rows

    select = result.select
    runs = [
        {
            "label": label,
            "learner": record.net,
            **run_json(record, select if select is None or record.has(select) else None),
        }
        for methods in threshold_rows(result.records, select=select).values()
        for label, records in methods.items()
        for record in records
    ]
    failed = [
        {"label": entry.label, **failure.model_dump(mode="json")} for entry, failure in result.failed_entries.items()
    ]
    print_json({"runs": runs, "failed": failed, "skipped": list(result.skipped)})
