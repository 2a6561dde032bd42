"""The consoles for standard output and standard error, and progress bars with the time left."""

import io
import json
import os
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import NoReturn, Self, final

from rich.console import Console, RenderableType
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

from umix.errors import one_line

_WIDTH = 100  # columns of tables that are not printed to a terminal


class OutputClosed(Exception):  # noqa: N818 — no failure: the reader has seen what it wanted
    """The program that reads standard output has closed it, as ``head`` does."""


@final
class _Output(Console):
    """Standard output, of which rich itself would say nothing and exit with code 1 where the reader has closed it."""

    def on_broken_pipe(self) -> NoReturn:
        raise OutputClosed


#: Results go to standard output, everything else to standard error.
OUT = _Output(soft_wrap=False)
ERR = Console(stderr=True)


def write_out(text: str) -> None:
    """Write ``text`` to standard output as it is."""
    try:
        OUT.file.write(text)
        OUT.file.flush()
    except BrokenPipeError:
        raise OutputClosed from None


def print_json(content: object) -> None:
    """Write ``content`` to standard output as JSON."""
    write_out(json.dumps(content, indent=2) + "\n")


def drop_output() -> None:
    """Drop what cannot be written to standard output, which Python would try again when it ends."""
    output = sys.__stdout__
    if output is None or sys.stdout is not output:
        return
    try:
        output.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())


def as_text(shown: RenderableType) -> str:
    """``shown`` as text, as a terminal without colours would print it."""
    console = Console(file=io.StringIO(), width=_WIDTH, color_system=None, force_jupyter=False)
    with console.capture() as capture:
        console.print(shown)
    return capture.get()


def as_html(shown: RenderableType) -> str:
    """``shown`` as HTML, for notebooks."""
    console = Console(file=io.StringIO(), width=_WIDTH, record=True, force_jupyter=False)
    console.print(shown)
    return console.export_html(
        inline_styles=True, code_format='<pre style="line-height: normal; font-family: monospace">{code}</pre>'
    )


@final
class Bars:
    """A progress bar for the current stage and, if there are several runs, one for all runs."""

    def __init__(self, *, runs: int = 1, quiet: bool = False, what: str = "all runs") -> None:
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
        )
        self._progress = Progress(
            *columns, TimeRemainingColumn(), console=ERR, transient=True, disable=quiet or not ERR.is_terminal
        )
        self._runs: TaskID | None = self._progress.add_task(what, total=runs) if runs > 1 else None
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

    def run_done(self, warnings: Sequence[str]) -> None:
        """Print the warnings of a run that has ended or was finished before, and advance the bar of all runs."""
        for warning in warnings:
            ERR.print(f"[yellow]warning:[/yellow] {escape(one_line(f'{self.label}: {warning}'))}", highlight=False)
        if self._runs is not None:
            self._progress.advance(self._runs)

    def update_runs(self, what: str, *, done: int) -> None:
        """Set the text and the position of the bar of all runs."""
        if self._runs is not None:
            self._progress.update(self._runs, description=what, completed=done)

    def note(self, message: str) -> None:
        ERR.print(escape(one_line(message)), highlight=False, soft_wrap=True)
