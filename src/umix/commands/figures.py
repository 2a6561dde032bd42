"""``umix figures``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from umix.commands.execution import execute_all
from umix.commands.flags import Quiet, Root
from umix.terminal import OUT

if TYPE_CHECKING:
    from umix.reports.charts.figure import Figure

_REAL = ("waterbirds", "celeba", "camelyon17")


def figures(
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o"], help="Folder for the figures.")] = Path("figures"),
    format_: Annotated[Literal["pdf", "svg", "png"], Parameter(name=["--format", "-f"], help="File format.")] = "pdf",
    root: Root = None,
    runs: Annotated[Path, Parameter(help="Folder for the runs that the figures are made of.")] = Path("runs"),
    quiet: Quiet = False,
) -> None:
    """Make the paper's figures on the embedded tasks and, with --root, on the image tasks found there."""
    from umix.bench.runs.places import Places
    from umix.bench.spec.run_spec import RunSpec
    from umix.reports.charts.figure import write_figures
    from umix.reports.charts.paper_figures import density_figure, training_figure

    real = [] if root is None else _present(root)
    long = {"trajectory.epochs": 30}  # the accuracy of rare groups rises late
    specs: dict[str, list[Any]] = {
        "four_moons, trajectory": [RunSpec(task="four_moons", method="umix", settings={"length": 10} | long)],
        "four_moons, ensemble": [
            RunSpec(task="four_moons", method="umix", settings={"uncertainty": "ensemble", "length": 10})
        ],
        "colored_digits": [RunSpec(task="colored_digits", method="umix", settings=long)],
    }
    records = execute_all(specs, Places(runs), quiet=quiet)
    for task in real:
        spec = RunSpec(task=task, method="umix", settings={"task.allow_subset": True})
        records |= execute_all({task: [spec]}, Places(runs, root=root), quiet=quiet)
    paper_figures = [_moons()]
    for kind in ("trajectory", "ensemble"):
        record = records[f"four_moons, {kind}"][0]
        paper_figures.append(density_figure(record, name=f"four_moons-{kind}", title=f"Uncertainty by {kind}"))
    for task in ("colored_digits", *real):
        paper_figures.append(density_figure(records[task][0], name=f"{task}-uncertainty", title=f"Uncertainty, {task}"))
    for label, task in [
        ("four_moons, trajectory", "four_moons"),
        *((task, task) for task in ("colored_digits", *real)),
    ]:
        paper_figures.append(training_figure(records[label][0], name=f"{task}-training"))
    for figure, path in zip(paper_figures, write_figures(paper_figures, out, format_), strict=True):
        OUT.print(f"{path}: {figure.title}", highlight=False, markup=False, soft_wrap=True)


def _present(root: Path) -> list[str]:
    """The image tasks whose folder is in ``root``; raises UserError if there is none."""
    from umix.data.registry import load_task
    from umix.errors import UserError

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
