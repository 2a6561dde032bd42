"""``umix run``."""

import math
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from umix.commands.doctor import table_task
from umix.commands.execution import execute_all, follow, run_json
from umix.commands.flags import (
    DataFlags,
    DeviceFlags,
    EvaluationFlags,
    Json,
    Log,
    MlflowUri,
    NetFlags,
    Out,
    Quiet,
    Select,
    Set,
    TrustCode,
    parse_names,
    parse_settings,
)
from umix.core.words import counted
from umix.errors import UserError
from umix.limits import require_count
from umix.terminal import OUT, Bars, print_json

if TYPE_CHECKING:
    from umix.bench.runs.record import RunRecord
    from umix.bench.spec.run_spec import RunSpec


def run(
    task: str,
    method: str = "best",
    *,
    seed: int = 0,
    set_: Set = (),
    net: NetFlags | None = None,
    preset: Annotated[str, Parameter(help="Settings to start from: a name or a FILE.toml.")] = "default",
    select: Select = None,
    evaluation: EvaluationFlags | None = None,
    budget: Annotated[
        float | None,
        Parameter(
            help="How far a contest (METHOD best, eta=auto) may lower average validation accuracy below ERM's: 0.02 is two points. "
            "Default: 0.1 where no groups decide, else any."
        ),
    ] = None,
    trials: Annotated[int | None, Parameter(help="With METHOD best: most candidates to try.")] = None,
    time: Annotated[
        float | None,
        Parameter(help="With METHOD best: seconds for the whole command; fewer candidates are tried if need be."),
    ] = None,
    data: DataFlags | None = None,
    where: DeviceFlags | None = None,
    log: Log = None,
    mlflow_uri: MlflowUri = None,
    trust_code: TrustCode = False,
    out: Out = Path("runs"),
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train TASK, a name or the path of your own data, with METHOD and print the test rates; a killed run is resumed.

    METHOD best tries the others on validation and trains the one that does best on validation.
    """
    from umix.bench.runs.record import known_rule
    from umix.bench.runs.recorded import recorded_run
    from umix.data.rows.table_file import check_data_file
    from umix.reports.sentences import choice_words, column_words, threshold_words
    from umix.reports.tables.run_table import run_table

    if select is not None:
        known_rule(select)
    data, where, settings = data or DataFlags(), where or DeviceFlags(), parse_settings(set_)
    settings |= (
        data.settings()
        | where.settings()
        | (net or NetFlags()).settings()
        | (evaluation or EvaluationFlags()).settings()
    )
    settings |= _selection_settings(method, trials, time, budget)
    check_data_file(task)
    bars = Bars(quiet=quiet)
    bars.label = f"{method}, seed {seed}"
    asked: dict[str, Any] = {"task": task, "method": method, "settings": settings, "seed": seed, "preset": preset}
    record, logging = None, []
    if not (data.root or log or mlflow_uri or where.several):
        record = recorded_run(out, **asked)
    if record is not None:
        bars.run_done(record.warnings)
    else:
        bars.status("loading packages")
        with nullcontext() if where.several else bars:
            from umix.bench.loggers import loggers
            from umix.bench.spec.run_spec import RunSpec

            spec = RunSpec(**asked, trust_code=trust_code)
            _check_select(select, spec)
            logging = loggers(parse_names(log), out=out, mlflow_uri=mlflow_uri, select=select)
            record = _executed(spec, data, where, out, bars)
        if record is None:
            return
    for write in logging:
        write(record)
    if as_json:
        print_json(run_json(record, select))
        return
    summary = record.summary(select)
    OUT.print(run_table(record, summary))
    if words := column_words(record):
        OUT.print(words, highlight=False, soft_wrap=True, markup=False)
    for words in filter(None, (choice_words(record, summary), threshold_words(record))):
        OUT.print(words, highlight=False, markup=False)
    for name, stage in record.stages.items():
        duration = "reused" if stage.reused else f"{stage.seconds:.1f} s"
        OUT.print(f"stage {name}: {counted(stage.epochs, 'epoch')}, {duration}", highlight=False)
    OUT.print(f"Record: {record.directory}", highlight=False, soft_wrap=True, markup=False)


def _check_select(select: str | None, spec: "RunSpec") -> None:
    """Raise where the run of ``spec`` will have nothing that the rule ``select`` chooses by."""
    from umix.data.rows.row_roles import RowRoles

    source: object = spec.plan.source
    if select == "worst" and isinstance(source, RowRoles) and not source.groups:
        raise UserError("--select worst must know the groups: name their columns with --groups, or select worst_class.")
    if select == "uncertainty_quintile" and "trajectory" not in spec.plan.method.stages:
        raise UserError(
            f"--select {select} must be given a method with a trajectory stage, such as umix, got {spec.method!r}."
        )


def _executed(spec: "RunSpec", data: DataFlags, where: DeviceFlags, out: Path, bars: Bars) -> "RunRecord | None":
    """The record of ``spec``; None in a process that only helps the first one, which prints it."""
    from umix.bench.runs.execute import is_finished
    from umix.data.registry import refuse_root

    refuse_root(data.root, [type(spec.plan.source)])
    engine, paths = where.engine(), data.paths(out)
    engine.launch()
    if not engine.first:
        follow(spec, paths, engine)
        return None
    bars.status(f"reading {Path(spec.task).name}")
    with bars:
        task = None if is_finished(spec, paths.out) else table_task(spec)
        records = execute_all({spec.method: [spec]}, paths, quiet=False, engine=engine, task=task, bars=bars)
    return records[spec.method][0]


def _selection_settings(method: str, trials: int | None, time: float | None, budget: float | None) -> dict[str, float]:
    """The limits of a selection as settings; trials and time are those of ``best`` alone."""
    limits = {name: value for name, value in (("trials", trials), ("time", time)) if value is not None}
    if limits and method != "best":
        raise UserError(f"--{next(iter(limits))} must be given with METHOD best, got {method!r}; leave the flag out.")
    if trials is not None:
        require_count("trials", trials)
    if time is not None and not 0 < time < math.inf:
        raise UserError(f"--time must be a number of seconds above 0, got {time:g}.")
    if budget is not None and not 0 <= budget <= 1:
        raise UserError(
            f"--budget must be a share of the examples, a number in [0, 1], got {budget:g}; 0.02 is two points."
        )
    settings = {f"best.{name}": value for name, value in limits.items()}
    return settings if budget is None else {**settings, "evaluation.budget": budget}
