"""What people see: progress bars with the time left on standard error, catalogues and checks on standard output."""

import json
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, final

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from umix.settings import Settings, legal

if TYPE_CHECKING:
    from umix.bench.presets import Tables
    from umix.data.examine import Examination

#: Results go to standard output, everything else to standard error.
OUT = Console(soft_wrap=False)
ERR = Console(stderr=True)


@final
class Bars:
    """A bar for the stage under way and, where there are several runs, one for all of them."""

    def __init__(self, *, runs: int = 1, quiet: bool = False) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
        )
        self._progress = Progress(
            *columns, TimeRemainingColumn(), console=ERR, transient=True, disable=quiet or not ERR.is_terminal
        )
        self._runs: TaskID | None = self._progress.add_task("all runs", total=runs) if runs > 1 else None
        self._stage: TaskID | None = None
        self.label = ""

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def start(self, stage: str, *, total: int, done: int) -> None:
        self._stage = self._progress.add_task(f"{self.label} · {stage} steps", total=total, completed=done)

    def advance(self, steps: int) -> None:
        if self._stage is not None:
            self._progress.advance(self._stage, steps)

    def finish(self) -> None:
        if self._stage is not None:
            self._progress.remove_task(self._stage)
            self._stage = None

    def run_done(self) -> None:
        if self._runs is not None:
            self._progress.advance(self._runs)

    def note(self, message: str) -> None:
        ERR.print(message, highlight=False, soft_wrap=True)

    def warn(self, message: str) -> None:
        ERR.print(f"[yellow]warning:[/yellow] {message}", highlight=False)


def print_json(content: object) -> None:
    sys.stdout.write(json.dumps(content, indent=2) + "\n")


def print_catalogue(entries: Mapping[str, tuple[type[Settings], str, dict[str, Any]]], *, as_json: bool) -> None:
    """Named settings classes with their fields, ranges and defaults."""
    if as_json:
        print_json(
            {
                name: {"summary": text, **facts, "settings": kind.model_json_schema()}
                for name, (kind, text, facts) in entries.items()
            }
        )
        return
    for name, (kind, text, facts) in entries.items():
        OUT.print(f"[bold]{name}[/bold]  {text}", highlight=False)
        for fact, value in facts.items():
            OUT.print(f"  {fact.replace('_', ' ')}: {value}", highlight=False, style="dim")
        table = Table(
            "setting", "legal", "default", "meaning", box=None, padding=(0, 2), show_header=bool(kind.model_fields)
        )
        for field_name, field in kind.model_fields.items():
            table.add_row(field_name, legal(field), str(field.default), field.description or "")
        OUT.print(table)


def print_presets(presets: "Mapping[str, Tables]", title: str) -> None:
    """All settings of a task's presets, a row each."""
    table = Table("preset", "part", "setting", "value", title=title, title_justify="left")
    for name, tables in presets.items():
        for part, values in tables.items():
            own = {key: value for key, value in values.items() if isinstance(value, dict)}
            table.add_row(name, part, *_columns({key: value for key, value in values.items() if key not in own}))
            for inner, settings in own.items():
                table.add_row(name, f"{part}.{inner}", *_columns(settings))
        table.add_section()
    OUT.print(table)


def print_examination(found: "Examination", title: str) -> None:
    """What was found in a folder: counts, then problems."""
    table = Table("group", *found.counts, title=title, title_justify="left")
    for group in next(iter(found.counts.values())):
        table.add_row(group, *(f"{sizes[group]:,}" for sizes in found.counts.values()))
    OUT.print(table)
    for finding in found.problems:
        OUT.print(f"[red]wrong:[/red] {escape(str(finding))}", highlight=False, soft_wrap=True)
    for mismatch in found.mismatches:
        allowed = "allowed" if found.allow_subset else "wrong"
        OUT.print(f"[yellow]{allowed}:[/yellow] {escape(mismatch)}", highlight=False, soft_wrap=True)
    verdict = "fine" if found.fine else "not fine"
    OUT.print(f"{found.folder}: {verdict}, {found.images:,} images opened", highlight=False, soft_wrap=True)


def _columns(values: Mapping[str, Any]) -> tuple[str, str]:
    return "\n".join(values), "\n".join(json.dumps(value) for value in values.values())
