"""``umix bench``."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.markup import escape

from umix.commands import bench_flags as flags
from umix.commands.flags import (
    DataFlags,
    Decide,
    Json,
    Log,
    MinGroup,
    MlflowUri,
    NetFlags,
    Out,
    Quiet,
    Select,
    TrustCode,
    UseGroups,
    judge_settings,
    parse_names,
    parse_settings,
)
from umix.commands.study_search import tuned_plan
from umix.errors import UserError
from umix.terminal import ERR, OUT, print_json

if TYPE_CHECKING:
    from umix.bench.executors.outcome import Executor
    from umix.bench.executors.processes import Processes
    from umix.bench.loggers.registry import Logger
    from umix.bench.study.study import Study
    from umix.bench.study.study_plan import StudyPlan


def bench(
    *tasks: Annotated[str, Parameter(help="Tasks: names, or paths of data of your own.")],
    methods: flags.Methods = None,
    seeds: flags.Seeds = None,
    file: flags.File = None,
    set_: flags.Settings = (),
    preset: Annotated[str | None, Parameter(help="Named settings of the tasks to start from.")] = None,
    tune: flags.Tune = None,
    workers: flags.Workers = None,
    threads: flags.Threads = None,
    ray: flags.OnRay = None,
    cpus: flags.Cpus = None,
    gpus: flags.Gpus = None,
    skip_impossible: flags.SkipImpossible = False,
    plan: flags.PlanOnly = False,
    schema: flags.Schema = False,
    net: NetFlags | None = None,
    select: Select = None,
    min_group: MinGroup = None,
    use_groups: UseGroups = None,
    decide: Decide = None,
    data: DataFlags | None = None,
    log: Log = None,
    mlflow_uri: MlflowUri = None,
    trust_code: TrustCode = False,
    out: Out = Path("runs"),
    quiet: Quiet = False,
    as_json: Json = False,
) -> int:
    """Compare METHODS on TASKS over seeds: plan all runs, execute those that are not finished, print the comparison.

    The same command resumes an interrupted study: finished runs are not repeated, failed runs are tried again. Several
    processes may work on one folder. Exit code 1 if a run has failed.
    """
    if schema:
        from umix.bench.study.study import study_schema

        print_json(study_schema())
        return 0
    _check(tasks, methods, file)
    _check_execution(workers, ray, {"--threads": threads}, {"--cpus": cpus, "--gpus": gpus})
    if tune is not None and plan:
        raise UserError("--plan must know the settings that --tune has yet to find; leave one out.")
    changes = {"seeds": seeds, "preset": preset, "skip_impossible": skip_impossible or None}
    with ExitStack() as stack:
        processes = (
            _workers(workers, 1 if threads is None else threads, stack, start=not plan) if workers is not None else None
        )
        # Imported after the workers were started: they import torch at the same time.
        from umix.api.study import plan_study
        from umix.api.study_result import StudyResult
        from umix.bench.runs.record import known_rule
        from umix.bench.study.execute_study import execute_study
        from umix.bench.study.study import with_settings
        from umix.commands.live_table import LiveTable
        from umix.commands.study_results import print_results, print_study_json
        from umix.files import ensure_writable

        given = {key: value for key, value in changes.items() if value is not None}
        study = _study(tasks, methods, file, given, trust_code=trust_code)
        data = data or DataFlags()
        settings = parse_settings(set_) | (net or NetFlags()).settings() | judge_settings(min_group, use_groups, decide)
        with _naming_file(file):
            if select is not None:
                known_rule(select)
            study = with_settings(_with_data(study, data), settings)
            study_plan = plan_study(study, data.places(out), trust_code=trust_code)
        logging = _loggers(log, mlflow_uri, out, select)
        if not plan and study_plan.to_run:
            ensure_writable(out)
        if tune is not None:
            study_plan = tuned_plan(study_plan, trials=tune, select=select, workers=processes, quiet=quiet or as_json)
        if not as_json and (plan or not quiet):
            _show_plan(study_plan, workers=workers or 1, to=OUT if plan else ERR)
        if plan:
            if as_json:
                print_json({"plan": study_plan.as_json(), "skipped": list(study_plan.grid.skipped)})
            return 0
        executor = processes or _in_this_process(ray if study_plan.to_run else None, cpus, gpus)
        with LiveTable(study_plan, workers=executor.workers, quiet=quiet or as_json) as live_table:
            result = StudyResult(study_plan, execute_study(study_plan, executor, live_table), select=select)
    for write, record in product(logging, result.all_records):
        write(record)
    if as_json:
        print_study_json(result)
    else:
        print_results(result)
    return 1 if result.failures else 0


def _check(tasks: Sequence[str], methods: str | None, file: Path | None) -> None:
    """Check the arguments that can be checked before anything slow is imported."""
    if file is not None and (tasks or methods):
        raise UserError("With --file the tasks and methods must be in the file; leave them out of the command line.")
    if file is None and not (tasks and methods):
        raise UserError(
            "A study must have tasks and methods: umix bench TASK... --methods erm,umix, or umix bench --file study.toml."
        )


def _check_execution(
    workers: int | None, ray: str | None, worker_flags: Mapping[str, object], ray_flags: Mapping[str, object]
) -> None:
    """Refuse --workers together with --ray, and the flags of one without it."""
    if workers is not None and ray is not None:
        raise UserError("Runs are executed by --workers or by --ray, got both; leave one out.")
    for main_flag, main_value, other_flags in (("--workers", workers, worker_flags), ("--ray", ray, ray_flags)):
        for flag, value in other_flags.items():
            if main_value is None and value is not None:
                raise UserError(f"{flag} must go with {main_flag}, got {flag} {value:g} alone.")


@contextmanager
def _naming_file(file: Path | None) -> Iterator[None]:
    """Inside the block, error messages about a study in ``file`` start with the name of the file."""
    try:
        yield
    except UserError as error:
        raise error if file is None else UserError(f"{file}: ", error) from None


def _loggers(log: str | None, mlflow_uri: str | None, out: Path, select: str | None) -> "list[Logger]":
    from umix.bench.loggers.registry import loggers

    return loggers(parse_names(log), out=out, mlflow_uri=mlflow_uri, select=select)


def _workers(workers: int, threads: int, stack: ExitStack, *, start: bool) -> "Processes":
    """Worker processes; with ``start`` they begin to import what they need while the study is planned."""
    from umix.bench.executors.processes import Processes

    processes, cores = Processes(workers, threads=threads), os.cpu_count() or 1
    if not start:
        return processes
    if workers * threads > cores:
        ERR.print(
            f"note: {workers} workers × {threads} threads are more than the {cores} cores here; they will wait for each other.",
            highlight=False,
            soft_wrap=True,
        )
    stack.callback(processes.close)
    processes.start()
    return processes


def _in_this_process(ray: str | None, cpus: float | None, gpus: float | None) -> "Executor":
    """The executor without worker processes: this process, or a Ray cluster."""
    if ray is not None:
        from umix.bench.executors.ray import Ray

        return Ray(ray, cpus=1.0 if cpus is None else cpus, gpus=gpus or 0.0)
    from umix.bench.executors.serial import Serial

    return Serial()


def _study(
    tasks: Sequence[str], methods: str | None, file: Path | None, changes: dict[str, Any], *, trust_code: bool
) -> "Study":
    """The study that the command line or a file describes."""
    from umix.bench.study.study import Study, load_study

    if file is not None:
        in_file = load_study(file, trust_code=trust_code)
        return Study(**{**{name: getattr(in_file, name) for name in Study.model_fields}, **changes})
    names = [name.strip() for name in (methods or "").split(",") if name.strip()]
    return Study(tasks=list(tasks), methods=names, **changes)


def _with_data(study: "Study", data: DataFlags) -> "Study":
    """``study`` with the flags about data as settings of the tasks that they apply to."""
    from umix.data.registry import refuse_root, source_kind

    refuse_root(data.root, [source_kind(task.name)[0] for task in study.tasks])
    tasks, used = [], False
    for task in study.tasks:
        kind, implied = source_kind(task.name)
        settings = data.own_data if "path" in implied else {}
        used = used or bool(settings)
        if data.allow_subset and "allow_subset" in kind.model_fields:
            settings |= {"task.allow_subset": True}
        update = {"settings": {**task.settings, **settings}, "root": task.root or data.root}
        tasks.append(task.model_copy(update=update))
    if data.own_data and not used:
        flags = ", ".join(f"--{key.removeprefix('task.').replace('_', '-')}" for key in data.own_data)
        raise UserError(f"{flags} must be about data of your own, but the study has none.")
    return study.model_copy(update={"tasks": tuple(tasks)})


def _show_plan(study_plan: "StudyPlan", *, workers: int, to: Any) -> None:
    from umix.commands.study_tables import plan_table

    to.print(plan_table(study_plan, workers=workers))
    for note in study_plan.grid.skipped:
        ERR.print(f"[yellow]note:[/yellow] {escape(note)}", highlight=False, soft_wrap=True)
