"""``umix report``."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from umix.commands.flags import ReadDecide, Select
from umix.terminal import ERR, OUT


def report(
    directory: Annotated[Path, Parameter(help="Folder of runs, or of one run.")] = Path("runs"),
    *,
    output: Annotated[
        Path | None, Parameter(name=["--output", "-o"], help="The page. Default: report.html in DIRECTORY.")
    ] = None,
    open_: Annotated[bool, Parameter(name="--open", negative="", help="Show the page in the browser.")] = False,
    figures: Annotated[
        Literal["pdf", "svg", "png"] | None,
        Parameter(help="Also write every figure in this format, for a paper, into a folder beside the page."),
    ] = None,
    select: Select = None,
    decide: ReadDecide = None,
    baseline: Annotated[str | None, Parameter(help="Method to compare with, as the table names it.")] = None,
) -> None:
    """Make one HTML page of the runs in DIRECTORY: headline, groups, epochs, uncertainty, examples, where the model fails."""
    from umix.api.report import write_report

    path = output or directory / "report.html"
    written = write_report(directory, path, select=select, decide=decide, baseline=baseline, figures=figures)
    for message in written.notes:
        ERR.print(message, highlight=False, markup=False, soft_wrap=True)
    OUT.print(f"Report: {path}", highlight=False, markup=False, soft_wrap=True)
    if open_:
        import webbrowser

        webbrowser.open(path.absolute().as_uri())
