"""``umix.run_study``: tasks × methods × seeds from Python, as ``umix bench`` runs them."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from umix.api.study_result import StudyResult
from umix.api.train import flat_settings
from umix.bench.executors.outcome import Event, Executor, OnEvent
from umix.bench.runs.places import Places
from umix.bench.runs.record import known_rule
from umix.bench.search.search_result import SearchResult
from umix.bench.spec.task_reference import reference_to
from umix.bench.study.execute_study import StudyWatcher, execute_study
from umix.bench.study.study import Study, StudyMethod, StudyTask
from umix.bench.study.study_grid import make_grid
from umix.bench.study.study_plan import StudyPlan
from umix.bench.study.study_search import search_grid
from umix.errors import UserError
from umix.limits import MOST_RUNS

if TYPE_CHECKING:
    from umix.bench.executors.processes import Processes
    from umix.data.task import Task
    from umix.training.progress import Progress

#: A method as people give it: a name or a table of options.
MethodLike = StudyMethod | Mapping[str, Any] | str


def run_study(
    study: Study | None = None,
    *,
    tasks: "Sequence[Task | StudyTask | Mapping[str, Any] | str | Path]" = (),
    methods: Sequence[MethodLike] = (),
    seeds: Iterable[int] = range(5),
    settings: Mapping[str, Any] | None = None,
    preset: str = "default",
    skip_impossible: bool = False,
    trials: int | None = None,
    select: str | None = None,
    workers: int | None = None,
    threads: int = 1,
    ray: str | None = None,
    out: str | Path = "runs",
    root: str | Path | None = None,
    cache: str | Path | None = None,
    watcher: StudyWatcher | None = None,
    trust_code: bool = False,
) -> StudyResult:
    """Run every method on every task with every seed and return the comparison.

    Finished runs are not repeated and failed ones are tried again, so the same call goes on with an interrupted study.

    Args:
        study: the study as one value (``umix.Study``, ``umix.load_study(FILE)``), instead of all arguments down to skip_impossible.
        tasks: tasks in memory, names of tasks, or paths of your own data as ``{"name": "people.csv", "settings": {...}}``.
        methods: names of methods, or ``{"name": "umix", "label": "umix 20", "settings": {"eta": 20}}``.
        seeds: one run for each.
        settings: settings of all runs, as ``{"fit.epochs": 5}`` or ``{"fit": {"epochs": 5}}``.
        preset: named settings to start from.
        skip_impossible: leave out methods that need groups on tasks without them, instead of raising.
        trials: first search every method's settings on validation with this many trials each.
        select: rule that picks the epoch, for the search and the table.
        workers: processes that execute runs at once; None uses this process alone.
        threads: threads of each worker.
        ray: address of a Ray cluster that executes the runs, or ``auto``.
        out: folder of the runs.
        root: folder of a benchmark's files, for tasks that have any.
        cache: folder of decoded images and features; default ``cache`` below ``out``.
        watcher: is told how the study goes on.
        trust_code: whether preset files may name code as their net, ``module:factory``; for a study in a file see ``load_study``.

    """
    for name, given in (("tasks", tasks), ("methods", methods)):
        if isinstance(given, str | Path | Mapping) or not isinstance(given, Sequence):
            raise UserError(f"{name} must be a list, got {type(given).__name__}; for one alone write {name}=[...].")
    if not isinstance(seeds, Iterable):
        raise UserError(f"seeds must be a list or a range, got {seeds!r}; for one alone write seeds=[{seeds!r}].")
    if not (tasks and methods) if study is None else (tasks or methods):
        raise UserError("run_study must be given a study, or tasks and methods.")
    if select is not None:
        known_rule(select)
    known: dict[str, Task] = {}
    if study is None:
        entries = [_study_task(task, known) for task in tasks]
        study = Study(
            tasks=entries,
            methods=list(methods),
            seeds=tuple(islice(seeds, MOST_RUNS + 1)),
            settings=flat_settings(settings or {}),
            preset=preset,
            skip_impossible=skip_impossible,
        )
    places = Places(
        Path(out),
        root=None if root is None else Path(root),
        cache=None if cache is None else Path(cache),
        tasks=known,
    )
    with ExitStack() as stack:
        staff = _started(workers, threads, stack)
        plan = plan_study(study, places, trust_code=trust_code)
        if trials is not None:
            plan, _ = tune_study(plan, trials=trials, select=select, workers=staff)
        executor: Executor = staff or _without_workers(ray)
        return StudyResult(plan, execute_study(plan, executor, watcher), select=select)


def plan_study(study: Study, places: Places | None = None, *, trust_code: bool = False) -> StudyPlan:
    """All runs of ``study`` with their state on disk; whatever is wrong with the study is raised here, before anything runs."""
    return StudyPlan.of(make_grid(study, places, trust_code=trust_code))


def tune_study(
    plan: StudyPlan,
    *,
    trials: int,
    select: str | None = None,
    workers: "Processes | None" = None,
    progress: "Progress | None" = None,
    on_event: OnEvent | None = None,
) -> tuple[StudyPlan, list[SearchResult]]:
    """The plan with the settings that a search with ``trials`` trials found for every method, and what the searches found."""

    def ignore(event: Event) -> None: ...

    grid, found = search_grid(
        plan.grid, trials=trials, select=select, on_event=on_event or ignore, progress=progress, workers=workers
    )
    return StudyPlan.of(grid), found


def _study_task(task: "Task | StudyTask | Mapping[str, Any] | str | Path", known: "dict[str, Task]") -> Any:
    """``task`` as a study takes it; one in memory is put into ``known`` under its name."""
    if isinstance(task, StudyTask | Mapping):
        return task
    reference = reference_to(task)
    known |= reference.tasks
    return StudyTask(name=reference.name, settings=reference.settings)


def _started(workers: int | None, threads: int, stack: ExitStack) -> "Processes | None":
    """Worker processes, which import what they need while the study is planned."""
    if workers is None:
        return None
    from umix.bench.executors.processes import Processes

    processes = Processes(workers, threads=threads)
    stack.callback(processes.close)
    processes.start()
    return processes


def _without_workers(ray: str | None) -> Executor:
    if ray is not None:
        from umix.bench.executors.ray import Ray

        return Ray(ray)
    from umix.bench.executors.serial import Serial

    return Serial()
