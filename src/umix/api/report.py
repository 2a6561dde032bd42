"""``umix.report``: runs as one HTML page."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from umix.bench.runs.record import RunRecord, find_run, known_rule
from umix.core.selection import Threshold
from umix.errors import Setting, UmixWarning, UserError, unknown
from umix.reports.arrange import Gathered, arrange, gather, threshold_rows
from umix.reports.charts.figure import write_figures
from umix.reports.page.page import page
from umix.reports.page.section import sections
from umix.reports.target import known_target
from umix.store import atomic_write

Figures = Literal["pdf", "svg", "png"]


@runtime_checkable
class Reportable(Protocol):
    """A result that a page can be made of."""

    def gathered(self) -> tuple[Gathered, Path]:
        """Its runs, and the folder that the page belongs into."""


def report(
    runs: str | Path | Reportable | Sequence[RunRecord],
    output: str | Path | None = None,
    *,
    select: str | None = None,
    threshold: Threshold | None = None,
    baseline: str | None = None,
    figures: Figures | None = None,
    target: float | None = None,
) -> Path:
    """Write one HTML page about ``runs`` and return its path.

    Args:
        runs: a folder of runs or of one run, a study's result, a run's result, or records.
        output: the page; default ``report.html`` in the folder.
        select: rule that picks the epoch and, with ``threshold``, the threshold.
        threshold: ``tuned`` or ``off``; by default as each run was told.
        baseline: the method to compare with, as the tables name it.
        figures: also write every figure in this format, into a folder beside the page.
        target: what every group should reach, 0.7 for 70 %; the page says who does.

    """
    if output is not None and Path(output).suffix.lower() not in (".html", ".htm"):
        raise UserError(Setting("output"), f" must end in .html, got {str(output)!r}.")
    if select is not None:
        known_rule(select)
    gathered, folder = _gathered(runs)
    path = folder / "report.html" if output is None else Path(output)
    rows = threshold_rows(gathered.runs, select=select, threshold=threshold)
    labels = {label for methods in rows.values() for label in methods}
    if baseline is not None and baseline not in labels:
        raise unknown("baseline", baseline, labels)
    for message in gathered.skipped:
        warnings.warn(f"left out: {message}", UmixWarning, stacklevel=2)
    tasks = sections(rows, select=select, baseline=baseline, target=None if target is None else known_target(target))
    title = ", ".join(section.task for section in tasks[:4]) + (", …" if len(tasks) > 4 else "")
    atomic_write(path, page(gathered, tasks, title=title).encode())
    if figures is not None:
        folder = figures_folder(path)
        for section in tasks:
            write_figures(section.figures, folder if len(tasks) == 1 else folder / section.folder, figures)
    return path


def figures_folder(page: Path) -> Path:
    """The folder beside ``page`` that its figures are written into."""
    return page.with_name(f"{page.stem}-figures")


def _gathered(runs: str | Path | Reportable | Sequence[RunRecord]) -> tuple[Gathered, Path]:
    """The runs in order, and the folder that their page belongs into."""
    if isinstance(runs, str | Path):
        return gather(runs), find_run(runs) or Path(runs)
    if isinstance(runs, Reportable):
        return runs.gathered()
    if any(not record.has_directory for record in runs):
        raise UserError("A report must be made of runs with a folder, got a run in memory; train it with out='runs'.")
    return Gathered(arrange(runs), [], []), Path()
