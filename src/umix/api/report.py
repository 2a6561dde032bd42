"""``umix.report``: runs as one HTML page."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, final, runtime_checkable

from umix.bench.runs.record import RunRecord, known_rule
from umix.core.selection import Decide
from umix.errors import Setting, UserError, unknown
from umix.reports.arrange import Gathered, arrange, decided_rows, gather
from umix.reports.charts.figure import write_figures
from umix.reports.page.page import page
from umix.reports.page.section import sections
from umix.store import write_whole

Figures = Literal["pdf", "svg", "png"]


@runtime_checkable
class Reportable(Protocol):
    """A result that a page can be made of."""

    def gathered(self) -> tuple[Gathered, Path]:
        """Its runs, and the folder that the page belongs into."""


@final
@dataclass(frozen=True)
class WrittenReport:
    """The page that was written, and notes about what was left out of it or written beside it."""

    path: Path
    notes: tuple[str, ...]


def report(
    runs: str | Path | Reportable | Sequence[RunRecord],
    output: str | Path | None = None,
    *,
    select: str | None = None,
    decide: Decide | None = None,
    baseline: str | None = None,
    figures: Figures | None = None,
) -> Path:
    """Write one HTML page about ``runs`` and return its path.

    Args:
        runs: a folder of runs or of one run, a study's result, a run's result, or records.
        output: the page; default ``report.html`` in the folder.
        select: rule that picks the epoch and, with ``decide``, the decision.
        decide: ``biases`` or ``argmax``; by default as each run was told.
        baseline: the method to compare with, as the tables name it.
        figures: also write every figure in this format, into a folder beside the page.

    """
    return write_report(runs, output, select=select, decide=decide, baseline=baseline, figures=figures).path


def write_report(
    runs: str | Path | Reportable | Sequence[RunRecord],
    output: str | Path | None = None,
    *,
    select: str | None = None,
    decide: Decide | None = None,
    baseline: str | None = None,
    figures: Figures | None = None,
) -> WrittenReport:
    """``report`` with the notes that the command prints."""
    if output is not None and Path(output).suffix.lower() not in (".html", ".htm"):
        raise UserError(Setting("output"), f" must end in .html, got {str(output)!r}.")
    if select is not None:
        known_rule(select)
    gathered, folder = _gathered(runs)
    path = folder / "report.html" if output is None else Path(output)
    rows = decided_rows(gathered.runs, select=select, decide=decide)
    labels = {label for methods in rows.values() for label in methods}
    if baseline is not None and baseline not in labels:
        raise unknown("baseline", baseline, labels)
    notes = [f"left out: {message}" for message in gathered.skipped]
    tasks = sections(rows, select=select, baseline=baseline)
    title = ", ".join(section.task for section in tasks[:4]) + (", …" if len(tasks) > 4 else "")
    write_whole(path, page(gathered, tasks, title=title).encode())
    if figures is not None:
        for section in tasks:
            folder = path.with_name(f"{path.stem}-figures")
            folder = folder if len(tasks) == 1 else folder / section.folder
            written = write_figures(section.figures, folder, figures)
            notes.append(f"{len(written)} figures written to {folder}")
    return WrittenReport(path, tuple(notes))


def _gathered(runs: str | Path | Reportable | Sequence[RunRecord]) -> tuple[Gathered, Path]:
    """The runs in order, and the folder that their page belongs into."""
    if isinstance(runs, str | Path):
        return gather(runs), Path(runs)
    if isinstance(runs, Reportable):
        return runs.gathered()
    if any(not record.has_directory for record in runs):
        raise UserError("A report must be made of runs with a folder, got a run in memory; train it with out='runs'.")
    return Gathered(arrange(runs), [], []), Path()
