"""``umix bench``."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.markup import escape

from umix.commands.flags import (
    DataFlags,
    EvaluationFlags,
    Folds,
    Json,
    Log,
    MlflowUri,
    NetFlags,
    Out,
    Quiet,
    Select,
    TrustCode,
    parse_names,
    parse_settings,
)
from umix.errors import UserError
from umix.terminal import ERR, OUT, Bars, print_json

if TYPE_CHECKING:
    from umix.bench.executors.executor import Event, Executor
    from umix.bench.executors.processes import Processes
    from umix.bench.loggers import Logger
    from umix.bench.study.study import Study
    from umix.bench.study.study_plan import StudyPlan


_Methods = Annotated[str | None, Parameter(help="Methods to compare, as erm,jtt,umix.")]
_Seeds = Annotated[str | None, Parameter(help="Seeds, as 0:5 (without 5) or 0,1,2. Default: 0:5, with --folds 0.")]
_File = Annotated[
    Path | None, Parameter(help="A study in a TOML file instead of TASKS and --methods; see docs/how-to/studies.md.")
]
_Settings = Annotated[
    tuple[str, ...],
    Parameter(
        name="--set",
        negative="",
        help="A setting as key=value; METHOD.key=value or TASK.key=value for those runs alone; repeat for more.",
    ),
]
_Workers = Annotated[
    int | None, Parameter(help="Number of worker processes. Default: no workers, runs are executed in this process.")
]
_Threads = Annotated[int | None, Parameter(help="Threads of each worker. Default: 1.")]
_OnRay = Annotated[
    str | None, Parameter(name="--ray", help="Execute runs on a Ray cluster: auto, or the cluster's address.")
]
_Cpus = Annotated[float | None, Parameter(help="Ray: processor cores per run. Default: 1.")]
_Gpus = Annotated[float | None, Parameter(help="Ray: GPUs per run; 0.25 puts four runs on one GPU. Default: 0.")]
_Tune = Annotated[
    int | None,
    Parameter(
        help="First search every method's settings on validation, with this many trials each; see docs/how-to/search.md."
    ),
]
_SkipImpossible = Annotated[
    bool,
    Parameter(negative="", help="Leave out methods that need groups on tasks without them, instead of refusing."),
]
_PlanOnly = Annotated[bool, Parameter(name=["--plan", "--dry-run"], negative="", help="Show the plan and run nothing.")]
_Schema = Annotated[bool, Parameter(negative="", help="Print the JSON schema of study files.")]


def bench(
    *tasks: Annotated[str, Parameter(help="Tasks: names, or paths of data of your own.")],
    methods: _Methods = None,
    seeds: _Seeds = None,
    folds: Folds = None,
    file: _File = None,
    set_: _Settings = (),
    preset: Annotated[str | None, Parameter(help="Named settings of the tasks to start from.")] = None,
    tune: _Tune = None,
    workers: _Workers = None,
    threads: _Threads = None,
    ray: _OnRay = None,
    cpus: _Cpus = None,
    gpus: _Gpus = None,
    skip_impossible: _SkipImpossible = False,
    plan: _PlanOnly = False,
    schema: _Schema = False,
    net: NetFlags | None = None,
    select: Select = None,
    evaluation: EvaluationFlags | None = None,
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
    from umix.data.rows.table_file import check_data_file

    _check(tasks, methods, file)
    _check_execution(workers, ray, {"--threads": threads}, {"--cpus": cpus, "--gpus": gpus})
    if tune is not None and plan:
        raise UserError("--plan must know the settings that --tune has yet to find; leave one out.")
    changes = {"seeds": seeds, "folds": folds, "preset": preset, "skip_impossible": skip_impossible or None}
    for task in tasks:
        check_data_file(task)
    with Bars(quiet=quiet or as_json, what="loading packages"):
        from umix.api.study import StudyResult, plan_study
        from umix.bench.runs.record import known_rule
        from umix.bench.study.execute_study import execute_study
        from umix.bench.study.study import with_settings
        from umix.commands.study_output import LiveTable, print_results, print_study_json
        from umix.store import ensure_writable

    processes = None if workers is None else _workers(workers, 1 if threads is None else threads, quiet=plan)
    given = {key: value for key, value in changes.items() if value is not None}
    study = _study(tasks, methods, file, given, trust_code=trust_code)
    data = data or DataFlags()
    settings = parse_settings(set_) | (net or NetFlags()).settings() | (evaluation or EvaluationFlags()).settings()
    with _naming_file(file):
        if select is not None:
            known_rule(select)
        study = with_settings(_with_data(study, data), settings)
        study_plan = plan_study(study, data.paths(out), trust_code=trust_code)
    logging = _loggers(log, mlflow_uri, out, select)
    if not plan and study_plan.to_run:
        ensure_writable(out)
    if tune is not None:
        study_plan = _tuned_plan(study_plan, trials=tune, select=select, workers=processes, quiet=quiet or as_json)
    if not as_json and (plan or not quiet):
        _show_plan(study_plan, to=OUT if plan else ERR)
    if plan:
        if as_json:
            print_json({"plan": study_plan.as_json(), "skipped": list(study_plan.grid.skipped)})
        return 0
    executor = processes or _in_this_process(ray if study_plan.to_run else None, cpus, gpus)
    with LiveTable(study_plan, quiet=quiet or as_json) as live_table:
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
    from umix.bench.loggers import loggers

    return loggers(parse_names(log), out=out, mlflow_uri=mlflow_uri, select=select)


def _workers(workers: int, threads: int, *, quiet: bool) -> "Processes":
    """Worker processes; a note says where they are more than this machine has cores for."""
    from umix.bench.executors.processes import Processes

    processes, cores = Processes(workers, threads=threads), os.cpu_count() or 1
    if not quiet and workers * threads > cores:
        ERR.print(
            f"note: {workers} workers × {threads} threads are more than the {cores} cores here; they will wait for each other.",
            highlight=False,
            soft_wrap=True,
        )
    return processes


def _in_this_process(ray: str | None, cpus: float | None, gpus: float | None) -> "Executor":
    """The executor without worker processes: this process, or a Ray cluster."""
    if ray is not None:
        from umix.bench.executors.ray import Ray

        return Ray(ray, cpus=1.0 if cpus is None else cpus, gpus=gpus or 0.0)
    from umix.bench.executors.executor import Serial

    return Serial()


def _study(
    tasks: Sequence[str], methods: str | None, file: Path | None, changes: dict[str, Any], *, trust_code: bool
) -> "Study":
    """The study that the command line or a file describes."""
    from umix.bench.study.study import Study, load_study

    if file is not None:
        in_file = load_study(file, trust_code=trust_code)
        return Study(**{**{name: getattr(in_file, name) for name in in_file.model_fields_set}, **changes})
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


def _show_plan(study_plan: "StudyPlan", *, to: Any) -> None:
    from umix.commands.study_output import plan_table

    to.print(plan_table(study_plan))
    for note in study_plan.grid.skipped:
        ERR.print(f"[yellow]note:[/yellow] {escape(note)}", highlight=False, soft_wrap=True)


def _tuned_plan(
    study_plan: "StudyPlan",
    *,
    trials: int,
    select: str | None,
    workers: "Processes | None",
    quiet: bool,
) -> "StudyPlan":
    """The plan with the best settings of a search per method, all with the same budget; prints each result."""
    from umix.api.study import tune_study
    from umix.bench.study.study_search import search_jobs
    from umix.reports.tables.search_table import score_text

    done: dict[str, int] = {}
    with Bars(
        runs=max(2, trials * len(search_jobs(study_plan.grid, trials=trials, select=select))),
        quiet=quiet,
        what="trials",
    ) as bars:

        def on_event(event: "Event") -> None:
            if event.kind == "note":
                bars.note(f"{event.key}: {event.message}")
                return
            done[event.key] = event.done
            bars.label = event.stage
            bars.update_runs(", ".join(filter(None, (event.key, event.message))), done=sum(done.values()))

        plan, results = tune_study(
            study_plan, trials=trials, select=select, workers=workers, progress=bars, on_event=on_event
        )
    for result in results:
        settings = ", ".join(f"{key}={value}" for key, value in result.settings.items())
        if not quiet:
            ERR.print(
                f"{result.method} on {result.task}: validation {score_text(result.default)} → {score_text(result.value)} with "
                f"{settings}",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )
    return plan
