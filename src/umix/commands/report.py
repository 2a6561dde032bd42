"""``umix report``."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from umix.commands.flags import Select
from umix.terminal import ERR, OUT


def report(
    directory: Annotated[Path, Parameter(help="Folder of runs, or of one run.")] = Path("runs"),
    *,
    output: Annotated[
        Path | None, Parameter(name=["--output", "-o"], help="The page; else report.html in DIRECTORY.")
    ] = None,
    open_: Annotated[bool, Parameter(name="--open", negative="", help="Show the page in the browser.")] = False,
    figures: Annotated[
        Literal["pdf", "svg", "png"] | None,
        Parameter(help="Write every figure for a paper, too, into a folder beside the page."),
    ] = None,
    select: Select = None,
    baseline: Annotated[str | None, Parameter(help="Method to compare with, as the table names it.")] = None,
) -> None:
    """Make one HTML page of the runs in DIRECTORY: headline, groups, epochs, uncertainty, examples, where the model fails."""
    path = output or directory / "report.html"
    made = make_report(directory, path, select=select, baseline=baseline, figures=figures)
    for message in made:
        ERR.print(message, highlight=False, markup=False, soft_wrap=True)
    OUT.print(f"Report: {path}", highlight=False, markup=False, soft_wrap=True)
    if open_:
        import webbrowser

        webbrowser.open(path.absolute().as_uri())


def make_report(
    directory: Path,
    path: Path,
    *,
    select: str | None = None,
    baseline: str | None = None,
    figures: Literal["pdf", "svg", "png"] | None = None,
) -> list[str]:
    """Write the report of ``directory`` to ``path``, and its figures beside it; returns what there is to say of it."""
    from umix.bench.runs.record import known_rule
    from umix.errors import UserError, unknown
    from umix.files import write_whole
    from umix.reports.charts.figure import write_figures
    from umix.reports.gather import gather
    from umix.reports.page.page import page
    from umix.reports.page.section import sections

    if path.suffix.lower() not in (".html", ".htm"):
        raise UserError(f"--output must end in .html, got {str(path)!r}.")
    if select is not None:
        known_rule(select)
    gathered = gather(directory)
    labels = {label for methods in gathered.runs.values() for label in methods}
    if baseline is not None and baseline not in labels:
        raise unknown("baseline", baseline, labels)
    told = [f"left out: {message}" for message in gathered.skipped]
    found = sections(gathered.runs, select=select, baseline=baseline)
    title = ", ".join(section.task for section in found[:4]) + (", …" if len(found) > 4 else "")
    write_whole(path, page(gathered, found, title=title).encode())
    if figures is not None:
        for section in found:
            folder = path.with_name(f"{path.stem}-figures")
            folder = folder if len(found) == 1 else folder / section.folder
            written = write_figures(section.figures, folder, figures)
            told.append(f"{len(written)} figures written to {folder}")
    return told
