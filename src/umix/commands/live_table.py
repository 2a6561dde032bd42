"""Shows the progress of a study: a live table of method × seed on a terminal, else a line per run."""

from types import TracebackType
from typing import TYPE_CHECKING, Self, final

from rich.console import Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from umix.terminal import ERR

if TYPE_CHECKING:
    from umix.bench.executors.outcome import Event, Outcome
    from umix.bench.runs.record import RunRecord
    from umix.bench.study.study_grid import StudyEntry
    from umix.bench.study.study_plan import StudyPlan

_MOST_SEEDS = 12  # with more seeds, the table shows counts instead of a column per seed


@final
class LiveTable:
    """Receives events and outcomes of runs and shows the state of every run.

    Without a terminal it prints a line per run; with ``quiet`` it shows nothing.
    """

    def __init__(self, plan: "StudyPlan", *, workers: int, quiet: bool) -> None:
        self._plan = plan
        self._workers = workers
        self._quiet = quiet
        self._entries: dict[str, StudyEntry] = {entry.key: entry for entry in reversed(plan.grid.entries)}
        self._cells: dict[str, str] = dict.fromkeys(plan.states, "[dim]·[/dim]")
        self._rates: dict[str, float | None] = {}
        self._ended: set[str] = set()
        self._total = len(plan.states)
        self._runs = plan.grid.runs
        self._left = plan.left(plan.to_run, workers=workers)
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
            self._plan.pace.learn(outcome.record)
            rate = self._rates[outcome.key]
            result = f"worst {100 * rate:.1f}" if rate is not None else "done"
        elif outcome.failure is not None:
            self._cells[outcome.key] = "[red]failed[/red]"
            self._ended.add(outcome.key)
            result = f"failed: {outcome.failure.sentence}"
        self._update_time_left()
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
        self._ended.add(record.key)

    def _update_time_left(self) -> None:
        unfinished = [entry for entry in self._runs if entry.key not in self._ended]
        self._left = self._plan.left(unfinished, workers=self._workers)

    def _name(self, key: str) -> str:
        entry = self._entries[key]
        return f"{entry.task} · {entry.label} · seed {entry.spec.seed}"

    def _render(self) -> RenderableType:
        rows: dict[tuple[str, str], list[StudyEntry]] = {}
        for entry in self._plan.grid.entries:
            rows.setdefault((entry.task, entry.label), []).append(entry)
        seeds = list(dict.fromkeys(entry.spec.seed for entry in self._plan.grid.entries))
        wide = len(seeds) <= _MOST_SEEDS
        table = Table("task", "method", *([f"seed {seed}" for seed in seeds] if wide else ["ended", "worst so far"]))
        for (task, label), entries in rows.items():
            if wide:
                cells = {entry.spec.seed: self._cells[entry.key] for entry in entries}
                values = [cells.get(seed, "") for seed in seeds]
            else:
                rates = [rate for entry in entries if (rate := self._rates.get(entry.key)) is not None]
                mean = f"{100 * sum(rates) / len(rates):.1f}" if rates else ""
                values = [f"{sum(entry.key in self._ended for entry in entries)}/{len(entries)}", mean]
            table.add_row(escape(task), escape(label), *values)
        ended = f"{len(self._ended)} of {self._total} runs ended, time left: {self._left}."
        caption = f"{ended} Rates: worst test group (or class) in percent."
        return Group(table, Text(caption, style="dim"))
