"""Executes specs for commands, with a progress bar, and gives the JSON of a run."""

import os
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from umix.terminal import ERR, OUT, Bars

if TYPE_CHECKING:
    from umix.bench.runs.paths import RunPaths
    from umix.bench.runs.record import RunRecord
    from umix.bench.spec.run_spec import RunSpec
    from umix.data.task import Task
    from umix.training.engine import Engine


#: How long stages take, relative to each other, roughly: the estimate of the time left.
_LENGTHS = {"trajectory": 3.0, "race": 8.0, "fit": 2.0}


def execute_all(
    specs: dict[str, "list[RunSpec]"],
    paths: "RunPaths",
    *,
    quiet: bool,
    engine: "Engine | None" = None,
    task: "Task | None" = None,
    bars: Bars | None = None,
    warnings: str | None = "",
) -> dict[str, list["RunRecord"]]:
    """The records of labelled specs, executed one after the other with a progress bar; warnings are printed.

    ``task`` is that of all specs, if the caller has loaded it already. ``bars`` is the bar of the command, if it has one. Only
    warnings that begin with ``warnings`` are printed, and none at all if it is None.
    """
    from umix.bench.runs.execute import execute

    records: dict[str, list[RunRecord]] = {label: [] for label in specs}
    own = Bars(runs=sum(map(len, specs.values())), quiet=quiet)
    with own if bars is None else nullcontext(bars) as bars:
        for label, group in specs.items():
            for spec in group:
                bars.label = f"{label}, {spec.words}"
                bars.expect(_shares(spec))
                record = execute(spec, paths=paths, task=task, engine=engine, progress=bars)
                bars.run_done([one for one in record.warnings if warnings is not None and one.startswith(warnings)])
                records[label].append(record)
    return records


def _shares(spec: "RunSpec") -> dict[str, float]:
    """How much of the run each of its stages takes, roughly, by the name of the stage."""
    from umix.bench.runs.learners import learner_specs
    from umix.methods.best import Best
    from umix.selection.halving import SELECTION
    from umix.training.stage import FINAL

    method = spec.plan.method
    names = [stage.name for stage in method.erm_stages(spec.plan.fit.epochs)]
    if isinstance(method, Best) or "auto" in method.model_dump().values():
        names.append(SELECTION)
    lengths = {name: _LENGTHS.get(name, 2.0) for name in (*names, FINAL)}
    whole = len(learner_specs(spec)) * sum(lengths.values())
    return {name: length / whole for name, length in lengths.items()}


def follow(spec: "RunSpec", paths: "RunPaths", engine: "Engine") -> None:
    """Execute ``spec`` together with the first process of the run, which prints all results and errors."""
    from umix.bench.runs.execute import execute

    OUT.quiet = True
    ERR.quiet = (
        os.environ.get("NODE_RANK", os.environ.get("GROUP_RANK", "0")) == "0"
    )  # on the machine of the first process
    try:
        execute(spec, paths=paths, engine=engine)
    except RuntimeError as error:
        if "by peer" in str(error):  # another process has ended and printed the reason
            raise SystemExit(1) from None
        raise


def run_json(record: "RunRecord", select: str | None) -> dict[str, Any]:
    """The JSON of a run that ``--json`` prints."""
    return {
        "directory": str(record.directory),
        **record.model_dump(
            mode="json",
            include={"task", "method", "seed", "key", "plan", "stages", "warnings", "choices", "column_types"},
        ),
        "summary": record.summary(select).model_dump(mode="json"),
    }
