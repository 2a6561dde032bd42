"""``umix report``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from umix.commands.execution import execute_all
from umix.commands.flags import Quiet, ReadThreshold, Root, Select
from umix.errors import UserError
from umix.terminal import ERR, OUT

if TYPE_CHECKING:
    from umix.reports.charts.figure import Figure, FileFormat

_REAL = ("waterbirds", "celeba", "camelyon17")


def report(
    directory: Annotated[
        Path, Parameter(help="Folder of runs, or of one run, which the beginning of its name is enough for.")
    ] = Path("runs"),
    *,
    output: Annotated[
        Path | None, Parameter(name=["--output", "-o"], help="The page. Default: report.html in DIRECTORY.")
    ] = None,
    open_: Annotated[bool, Parameter(name="--open", negative="", help="Show the page in the browser.")] = False,
    figures: Annotated[
        Literal["pdf", "svg", "png"] | None,
        Parameter(help="Also write every figure in this format, for a paper, into a folder beside the page."),
    ] = None,
    paper: Annotated[
        bool,
        Parameter(
            negative="",
            help="Instead of a page, write the figures of the UMIX paper into DIRECTORY/paper-figures: it runs the embedded tasks "
            "and, with --root, the image tasks found there.",
        ),
    ] = False,
    select: Select = None,
    threshold: ReadThreshold = None,
    baseline: Annotated[str | None, Parameter(help="Method to compare with, as the table names it.")] = None,
    target: Annotated[
        float | None, Parameter(help="What every group should reach on test: 0.7 is 70 %. The page says who does.")
    ] = None,
    root: Root = None,
    quiet: Quiet = False,
) -> None:
    """Make one HTML page of the runs in DIRECTORY: headline, groups, epochs, uncertainty, examples, where the model fails."""
    from umix.api.report import figures_folder
    from umix.api.report import report as write_report

    if paper:
        if output or open_ or select or threshold or baseline or target:
            raise UserError("--paper must go with DIRECTORY, --figures, --root and --quiet alone: it makes no page.")
        _paper_figures(directory, figures or "pdf", root, quiet=quiet)
        return
    if root is not None:
        raise UserError("--root must go with --paper: a page is made of runs that are finished.")
    path = write_report(
        directory, output, select=select, threshold=threshold, baseline=baseline, figures=figures, target=target
    )
    if figures:
        ERR.print(f"Figures: {figures_folder(path)}", highlight=False, markup=False, soft_wrap=True)
    OUT.print(f"Report: {path}", highlight=False, markup=False, soft_wrap=True)
    if open_:
        import webbrowser

        webbrowser.open(path.absolute().as_uri())


def _paper_figures(runs: Path, form: "FileFormat", root: Path | None, *, quiet: bool) -> None:
    """Run what the paper's figures are made of and write them."""
    from umix.bench.runs.paths import RunPaths
    from umix.bench.spec.run_spec import RunSpec
    from umix.reports.charts.figure import write_figures
    from umix.reports.charts.paper_figures import training_figure, uncertainty_figure

    real = [] if root is None else _present(root)
    long = {"trajectory.epochs": 30}  # the accuracy of rare groups rises late
    specs: dict[str, list[Any]] = {
        "four_moons, trajectory": [RunSpec(task="four_moons", method="umix", settings={"length": 10} | long)],
        "four_moons, ensemble": [
            RunSpec(task="four_moons", method="umix", settings={"uncertainty": "ensemble", "length": 10})
        ],
        "colored_digits": [RunSpec(task="colored_digits", method="umix", settings=long)],
    }
    records = execute_all(specs, RunPaths(runs), quiet=quiet)
    for task in real:
        spec = RunSpec(task=task, method="umix", settings={"task.allow_subset": True})
        records |= execute_all({task: [spec]}, RunPaths(runs, root=root), quiet=quiet)
    drawn = [_moons()]
    for kind in ("trajectory", "ensemble"):
        record = records[f"four_moons, {kind}"][0]
        drawn.append(uncertainty_figure(record, name=f"four_moons-{kind}", title=f"Uncertainty by {kind}"))
    for task in ("colored_digits", *real):
        drawn.append(uncertainty_figure(records[task][0], name=f"{task}-uncertainty", title=f"Uncertainty, {task}"))
    drawn.append(training_figure(records["four_moons, trajectory"][0], name="four_moons-training"))
    for task in ("colored_digits", *real):
        drawn.append(training_figure(records[task][0], name=f"{task}-training"))
    for figure, path in zip(drawn, write_figures(drawn, runs / "paper-figures", form), strict=True):
        OUT.print(f"{path}: {figure.title}", highlight=False, markup=False, soft_wrap=True)


def _present(root: Path) -> list[str]:
    """The image tasks whose folder is in ``root``; raises UserError if there is none."""
    from umix.data.registry import load_task

    present: list[str] = []
    reasons: list[UserError] = []
    for task in _REAL:
        try:
            load_task(task, root=root, allow_subset=True)
            present.append(task)
        except UserError as error:
            reasons.append(error)
    if not present:
        raise UserError(f"--root must hold one of {', '.join(_REAL)}, but {root} does not: ", reasons[0])
    return present


def _moons() -> "Figure":
    """A scatter plot of the simulated training data."""
    from umix.data.registry import load_task
    from umix.reports.charts.paper_figures import points_figure

    task = load_task("four_moons")
    train = task.splits["train"]
    points = [
        {"x": round(x, 3), "y": round(y, 3), "group": task.groups[group]}
        for (x, y), group in zip(train.x[:].tolist(), train.group.tolist(), strict=True)  # type: ignore[index]
    ]
    return points_figure(points, task.groups)
