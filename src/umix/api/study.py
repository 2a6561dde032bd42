"""``umix.run_study``: tasks × methods × seeds from Python, as ``umix bench`` runs them, and what comes of it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final

from umix.api.comparison_table import ComparisonTable
from umix.api.report import report
from umix.api.result import RunResult
from umix.api.train import flat_settings
from umix.bench.executors.executor import Event, Executor, OnEvent, Serial
from umix.bench.executors.processes import Processes
from umix.bench.runs.failure import Failure
from umix.bench.runs.learners import learner_specs
from umix.bench.runs.paths import RunPaths
from umix.bench.runs.record import RunRecord, known_rule
from umix.bench.search.search_result import SearchResult
from umix.bench.spec.task_reference import reference_to
from umix.bench.study.execute_study import StudyResults, StudyWatcher, execute_study
from umix.bench.study.study import Study, StudyMethod, StudyTask
from umix.bench.study.study_plan import StudyEntry, StudyPlan, make_grid
from umix.bench.study.study_search import search_grid
from umix.core.selection import Threshold
from umix.errors import UserError
from umix.reports.arrange import Gathered

if TYPE_CHECKING:
    from umix.data.task import Task
    from umix.training.progress import Progress

#: A method as people give it: a name or a table of options.
MethodLike = StudyMethod | Mapping[str, Any] | str


@final
class StudyResult:
    """An executed study. Shows itself as its comparison table."""

    def __init__(self, plan: StudyPlan, results: StudyResults, *, select: str | None = None) -> None:
        self.plan = plan
        self.select = select
        self._results = results

    @property
    def records(self) -> dict[str, dict[str, list[RunRecord]]]:
        """Records by task and method, as the tables call them."""
        runs: dict[str, dict[str, list[RunRecord]]] = {}
        for entry in self.plan.grid.entries:
            if entry.key in self._results.records:
                by_method = runs.setdefault(entry.task, {})
                by_method.setdefault(entry.label, []).append(self._results.records[entry.key])
        return runs

    @property
    def all_records(self) -> list[RunRecord]:
        """The record of every finished run, once."""
        return list(self._results.records.values())

    @property
    def runs(self) -> dict[str, dict[str, list[RunResult]]]:
        """Results of single runs by task and method: for predictions and weights."""
        return {
            task: {
                label: [RunResult.in_folder(record, trust_code=record.net in self._nets) for record in records]
                for label, records in methods.items()
            }
            for task, methods in self.records.items()
        }

    @cached_property
    def _nets(self) -> set[str]:
        """The nets that the study names: those may be imported, where they are code, and not what else a record names."""
        return {one.plan.net.title for entry in self.plan.grid.entries for one in learner_specs(entry.spec)}

    @property
    def failed_entries(self) -> dict[StudyEntry, Failure]:
        """The failure of every entry of the study whose run failed."""
        failures = self._results.failures
        return {entry: failures[entry.key] for entry in self.plan.grid.entries if entry.key in failures}

    @property
    def failures(self) -> dict[str, Failure]:
        """The failures by task, method, seed and fold in words."""
        return {
            f"{entry.task} · {entry.label} · {entry.spec.words}": failure
            for entry, failure in self.failed_entries.items()
        }

    @property
    def skipped(self) -> tuple[str, ...]:
        """In words what could not run on which task."""
        return self.plan.grid.skipped

    def baseline(self) -> str:
        """The label of ERM, or of the first method if ERM is not in the study."""
        there = {
            entry.label: entry.spec.method for entry in self.plan.grid.entries if entry.key in self._results.records
        }
        return next((label for label, method in there.items() if method == "erm"), next(iter(there)))

    def table(
        self,
        *,
        select: str | None = None,
        threshold: Threshold | None = None,
        baseline: str | None = None,
        groups: bool = False,
    ) -> ComparisonTable:
        """Rates over seeds and differences to ``baseline``; with ``groups`` the rate of every group too.

        ``threshold`` (``tuned`` or ``off``) is by default what each run was told.
        """
        if not self._results.records:
            raise UserError("A table must have finished runs, but every run of this study failed; see failures.")
        failed: dict[str, Counter[str]] = {}
        for entry in self.failed_entries:
            failed.setdefault(entry.task, Counter())[entry.label] += 1
        return ComparisonTable.of(
            self.records,
            select=select or self.select,
            threshold=threshold,
            baseline=baseline or self.baseline(),
            groups=groups,
            failed=failed,
        )

    def report(
        self,
        output: str | Path = "report.html",
        *,
        select: str | None = None,
        threshold: Threshold | None = None,
        baseline: str | None = None,
        figures: Literal["pdf", "svg", "png"] | None = None,
    ) -> Path:
        """Write the study as one HTML page and return its path."""
        chosen = select or self.select
        return report(self, output, select=chosen, threshold=threshold, baseline=baseline, figures=figures)

    def gathered(self) -> tuple[Gathered, Path]:
        """The runs as a page takes them, and the folder of the runs."""
        failed = [f"{name}: {failure.sentence}" for name, failure in self.failures.items()]
        return Gathered(self.records, [], failed), self.plan.grid.paths.out

    def __str__(self) -> str:
        return str(self.table())

    def __repr__(self) -> str:
        done, failed = len(self._results.records), len(self._results.failures)
        return f"<StudyResult {done} runs finished, {failed} failed, in {self.plan.grid.paths.out}>"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def run_study(
    study: Study | None = None,
    *,
    tasks: "Sequence[Task | StudyTask | Mapping[str, Any] | str | Path]" = (),
    methods: Sequence[MethodLike] = (),
    seeds: Iterable[int] | None = None,
    folds: int | None = None,
    settings: Mapping[str, Any] | None = None,
    preset: str = "default",
    skip_impossible: bool = False,
    tune: int | None = None,
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
        seeds: one run for each; by default 0 to 4, with folds 0 alone.
        folds: divide the rows into so many folds, each of which is test once; the numbers are pooled over them.
        settings: settings of all runs, as ``{"fit.epochs": 5}`` or ``{"fit": {"epochs": 5}}``.
        preset: named settings to start from.
        skip_impossible: leave out methods that need groups on tasks without them, instead of raising.
        tune: first search every method's settings on validation with this many trials each.
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
    if seeds is not None and not isinstance(seeds, Iterable):
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
            **({} if seeds is None else {"seeds": tuple(seeds)}),
            folds=folds,
            settings=flat_settings(settings or {}),
            preset=preset,
            skip_impossible=skip_impossible,
        )
    paths = RunPaths(
        Path(out),
        root=None if root is None else Path(root),
        cache=None if cache is None else Path(cache),
        tasks=known,
    )
    processes = None if workers is None else Processes(workers, threads=threads)
    plan = plan_study(study, paths, trust_code=trust_code)
    if tune is not None:
        plan, _ = tune_study(plan, trials=tune, select=select, workers=processes)
    executor: Executor = processes or (Serial() if ray is None else _ray(ray))
    return StudyResult(plan, execute_study(plan, executor, watcher), select=select)


def plan_study(study: Study, paths: RunPaths | None = None, *, trust_code: bool = False) -> StudyPlan:
    """All runs of ``study`` with their state on disk; whatever is wrong with the study is raised here, before anything runs."""
    return StudyPlan.of(make_grid(study, paths, trust_code=trust_code))


def tune_study(
    plan: StudyPlan,
    *,
    trials: int,
    select: str | None = None,
    workers: Processes | None = None,
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


def _ray(address: str) -> Executor:
    from umix.bench.executors.ray import Ray

    return Ray(address)
