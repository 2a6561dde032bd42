"""``umix run``."""

import math
from pathlib import Path
from typing import Annotated

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
from umix.terminal import OUT, print_json


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
        float | None, Parameter(help="With METHOD best: seconds after which trying candidates ends.")
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
    from umix.bench.loggers import loggers
    from umix.bench.runs.execute import is_finished
    from umix.bench.runs.record import known_rule
    from umix.bench.spec.run_spec import RunSpec
    from umix.data.registry import refuse_root
    from umix.data.rows.row_roles import RowRoles
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
    spec = RunSpec(task=task, method=method, settings=settings, seed=seed, preset=preset, trust_code=trust_code)
    source: object = spec.plan.source
    refuse_root(data.root, [type(spec.plan.source)])
    if select == "worst" and isinstance(source, RowRoles) and not source.groups:
        raise UserError("--select worst must know the groups: name their columns with --groups, or select worst_class.")
    if select == "uncertainty_quintile" and "trajectory" not in spec.plan.method.stages:
        raise UserError(
            f"--select {select} must be given a method with a trajectory stage, such as umix, got {method!r}."
        )
    engine = where.engine()
    paths = data.paths(out)
    logging = loggers(parse_names(log), out=out, mlflow_uri=mlflow_uri, select=select)
    engine.launch()
    if not engine.first:
        follow(spec, paths, engine)
        return
    task_of_table = None if is_finished(spec, paths.out) else table_task(spec)
    record = execute_all({method: [spec]}, paths, quiet=quiet, engine=engine, task=task_of_table)[method][0]
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
