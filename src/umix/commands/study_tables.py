"""The plan of a study as a table for the terminal."""

from collections import Counter
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from umix.core.words import counted

if TYPE_CHECKING:
    from umix.bench.study.study_grid import State, StudyEntry
    from umix.bench.study.study_plan import StudyPlan

_REMARKS: dict["State", str] = {"failed": "failed before", "partly": "begun", "running": "running elsewhere"}


def plan_table(plan: "StudyPlan", *, workers: int) -> Table:
    """A row per task and method: how many runs are done and to run, and how long the latter will take."""
    table = Table(title=f"Plan: {headline(plan)}", title_justify="left")
    for name in ("task", "method", "runs", "done", "to run", "time", "of those to run"):
        table.add_column(name, justify="right" if name in ("runs", "done", "to run", "time") else "left")
    rows: dict[tuple[str, str], list[StudyEntry]] = {}
    for entry in plan.grid.entries:
        rows.setdefault((entry.task, entry.label), []).append(entry)
    for (task, label), entries in rows.items():
        unfinished = [entry for entry in entries if plan.states[entry.key] != "done"]
        numbers = (str(len(entries)), str(len(entries) - len(unfinished)), str(len(unfinished)))
        table.add_row(
            escape(task), escape(label), *numbers, plan.left(unfinished, workers=1), _remarks(plan, unfinished)
        )
    unfinished = plan.to_run
    numbers = (str(len(plan.states)), str(len(plan.states) - len(unfinished)), str(len(unfinished)))
    table.add_section()
    together = f"with {workers} workers" if workers > 1 else ""
    table.add_row("all", "", *numbers, plan.left(unfinished, workers=workers), together)
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
    parts = [f"{count[state]} {remark}" for state, remark in _REMARKS.items() if count[state]]
    cached = sum(entry.key in plan.cached for entry in entries)
    without = sum(entry.lacks_features for entry in entries)
    parts += [f"{cached} stage cached"] if cached else []
    return ", ".join([*parts, *([f"{without} without features"] if without else [])])
