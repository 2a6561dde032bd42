"""The consoles for standard output and standard error, and a progress bar with the time left."""

import io
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import NoReturn, Self, final

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from umix.core.words import duration
from umix.errors import one_line

_WIDTH = 100  # columns of tables that are not printed to a terminal
#: What people read while a stage is trained, where its name in the record says too little.
_STAGES = {
    "trajectory": "first fit",
    "reference": "reference fit",
    "race": "trying candidates",
    "fit": "final fit",
    "decode": "decoding images",
    "features": "computing features",
    "predict": "predicting",
    "importance": "shuffling columns",
}
_LEAST_SHARE = 0.05  # of the work, from which on the time left is estimated
_MOST_SHARE = 0.99  # of a run that has not ended


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
class _TimeLeft(ProgressColumn):
    """The time that is left if the rest goes on as what is done so far."""

    def render(self, task: Task) -> Text:
        share = task.percentage / 100 if task.total else 0.0
        if share < _LEAST_SHARE or task.elapsed is None:
            return Text("")
        seconds = (task.elapsed - task.fields["before"]) * (1 - share) / share
        return Text(f"about {duration(round(seconds))} left", style="progress.remaining")


@final
class Bars:
    """One progress bar for the whole command, with the time that has passed and an estimate of the time left.

    It moves to and fro until it is known how much there is to do. With ``expect`` that is all stages of a run, otherwise the
    current stage or, of several ``runs``, how many of them have ended.
    """

    def __init__(self, *, runs: int = 1, quiet: bool = False, what: str = "") -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TimeElapsedColumn(),
            _TimeLeft(),
            console=ERR,
            transient=True,
            disable=quiet or not ERR.is_terminal,
        )
        self._bar: TaskID = self._progress.add_task(what, total=None if runs == 1 else runs, before=0.0)
        self._runs, self._done, self._what = runs, 0, what
        self._shares: Mapping[str, float] = {}
        self._passed = 0.0  # of the current run: the shares of its stages that have ended
        self._stage, self._steps, self._total = "", 0, 1
        self.label = ""
        self.began = time.perf_counter()

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def status(self, words: str) -> None:
        """Show what is done before the first stage, such as reading data."""
        self._progress.update(self._bar, description=words, refresh=True)

    def expect(self, shares: Mapping[str, float]) -> None:
        """The next run begins: ``shares`` says for each of its stages, by name, how much of the run it takes, roughly."""
        self._shares, self._passed = shares, 0.0
        if not self._done:
            elapsed = self._progress.tasks[0].elapsed or 0.0
            self._progress.update(self._bar, before=elapsed)

    def start(self, stage: str, *, total: int, done: int) -> None:
        self._stage, self._steps, self._total = stage, done, max(total, 1)
        self._show()
        self._progress.refresh()

    def advance(self, steps: int) -> None:
        self._steps += steps
        if not self._progress.disable:
            self._show()

    def finish(self) -> None:
        self._passed += self._shares.get(self._stage, 0.0)
        self._stage, self._steps = "", 0

    def _show(self) -> None:
        what = self._what if self._runs > 1 else ""
        words = " · ".join(filter(None, (what, self.label, _STAGES.get(self._stage, self._stage))))
        if not self._shares and self._runs == 1:
            self._progress.update(self._bar, description=words, total=self._total, completed=self._steps)
            return
        share = self._passed + self._shares.get(self._stage, 0.0) * self._steps / self._total
        completed = self._done + min(share, _MOST_SHARE)
        self._progress.update(self._bar, description=words, total=self._runs, completed=completed)

    def run_done(self, warnings: Sequence[str]) -> None:
        """Print the warnings of a run that has ended or was finished before, and advance the bar to its end."""
        for warning in warnings:
            ERR.print(f"[yellow]warning:[/yellow] {escape(one_line(f'{self.label}: {warning}'))}", highlight=False)
        self.update_runs(self._what, done=self._done + 1)

    def update_runs(self, what: str, *, done: int) -> None:
        """Set the text of several runs and how many of them have ended; the next one begins."""
        self.began = time.perf_counter()
        if self._runs > 1:
            self._what, self._done = what, done
            self._progress.update(self._bar, description=what, completed=done)

    def note(self, message: str) -> None:
        ERR.print(escape(one_line(message)), highlight=False, soft_wrap=True)
