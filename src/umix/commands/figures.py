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
    format_: Annotated[
        Literal["pdf", "svg", "png"], Parameter(name=["--format", "-f"], help="What kind of files.")
    ] = "pdf",
    root: Root = None,
    runs: Annotated[Path, Parameter(help="Folder for the runs that the figures are made of.")] = Path("runs"),
    quiet: Quiet = False,
) -> None:
    """Make the paper's figures on the embedded tasks and, with --root, on the image tasks whose files are there."""
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
    done = execute_all(specs, Places(runs), quiet=quiet)
    for task in real:
        spec = RunSpec(task=task, method="umix", settings={"task.allow_subset": True})
        done |= execute_all({task: [spec]}, Places(runs, root=root), quiet=quiet)
    made = [_moons()]
    for kind in ("trajectory", "ensemble"):
        record = done[f"four_moons, {kind}"][0]
        made.append(density_figure(record, name=f"four_moons-{kind}", title=f"Uncertainty by {kind}"))
    for task in ("colored_digits", *real):
        made.append(density_figure(done[task][0], name=f"{task}-uncertainty", title=f"Uncertainty, {task}"))
    for label, task in [
        ("four_moons, trajectory", "four_moons"),
        *((task, task) for task in ("colored_digits", *real)),
    ]:
        made.append(training_figure(done[label][0], name=f"{task}-training"))
    for figure, path in zip(made, write_figures(made, out, format_), strict=True):
        OUT.print(f"{path}: {figure.title}", highlight=False, markup=False, soft_wrap=True)


def _present(root: Path) -> list[str]:
    """The image tasks whose folder is in ``root``; a folder with none of them is refused."""
    from umix.data.registry import load_task
    from umix.errors import UserError

    found: list[str] = []
    reasons: list[UserError] = []
    for task in _REAL:
        try:
            load_task(task, root=root, allow_subset=True)
            found.append(task)
        except UserError as error:
            reasons.append(error)
    if not found:
        raise UserError(f"--root must hold one of {', '.join(_REAL)}, but {root} does not: ", reasons[0])
    return found


def _moons() -> "Figure":
    """The simulated data themselves."""
    from umix.data.registry import load_task
    from umix.reports.charts.paper_figures import points_figure

    task = load_task("four_moons")
    train = task.splits["train"]
    points = [
        {"x": round(x, 3), "y": round(y, 3), "group": task.groups[group]}
        for (x, y), group in zip(train.x[:].tolist(), train.group.tolist(), strict=True)  # type: ignore[index]
    ]
    return points_figure(points, task.groups)
