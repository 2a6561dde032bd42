"""Searches the settings of every method of a study with the same budget, for a fair comparison."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

from umix.bench.executors.executor import Event, OnEvent
from umix.bench.executors.processes import Processes
from umix.bench.runs.paths import RunPaths
from umix.bench.search.optuna_study import need_optuna
from umix.bench.search.search_plan import plan_search
from umix.bench.search.search_result import SearchResult
from umix.bench.search.search_space import searched_settings
from umix.bench.search.tune import SearchProgress, tune
from umix.bench.spec.run_spec import RunSpec
from umix.bench.study.study_plan import StudyEntry, StudyGrid
from umix.errors import MachineError, UserError, cause
from umix.limits import require_count
from umix.training.progress import Progress, Silent


@final
@dataclass(frozen=True)
class SearchOutcome:
    """The result of a search, or the error that ended it."""

    key: str
    result: SearchResult | None = None
    error: UserError | MachineError | None = None
    busy: bool = False


@final
@dataclass(frozen=True, eq=False)
class SearchJob:
    """The search of one method's settings on one task; ``key`` is its name in progress messages."""

    key: str
    spec: RunSpec
    trials: int
    paths: RunPaths
    select: str | None
    seeds: tuple[int, ...]
    storage: str | None = None  # database URL, for workers on several machines; default a file below ``out``

    def run(self, on_event: OnEvent, *, wait: bool = False, progress: Progress | None = None) -> SearchOutcome:
        spec = self.spec
        options: dict[str, Any] = {
            "settings": spec.settings,
            "preset": spec.preset,
            "select": self.select,
            "seeds": self.seeds,
            "trust_code": spec.trust_code,
        }
        try:
            name = plan_search(spec.task, spec.method, **options, out=self.paths.out).title
            result = tune(
                spec.task,
                spec.method,
                trials=self.trials,
                **options,
                paths=self.paths,
                storage=self.storage,
                name=name,
                progress=progress or Silent(),
                watch=lambda update: on_event(self._event(update)),
            )
        except (UserError, MachineError) as error:
            return SearchOutcome(self.key, error=error)
        except (OSError, MemoryError) as error:
            return SearchOutcome(self.key, error=MachineError(cause(error)))
        return SearchOutcome(self.key, result)

    def crashed(self, error: Exception) -> SearchOutcome:
        return SearchOutcome(self.key, error=MachineError(str(error)))

    def _event(self, update: SearchProgress) -> Event:
        best = "" if update.best is None else f"best {update.best:.3f}"
        return Event(self.key, "steps", f"trial {update.trial}", done=update.done, total=self.trials, message=best)


def search_grid(
    grid: StudyGrid,
    *,
    trials: int,
    select: str | None,
    on_event: OnEvent,
    progress: Progress | None = None,
    workers: Processes | None = None,
) -> tuple[StudyGrid, list[SearchResult]]:
    """``grid`` with the best settings of ``trials`` trials for every task and method, and the results of the searches.

    All searches use one seed, which the study does not use. A method without settings to search
    stays as it is. With ``workers`` several searches run at once, each in one process; their
    results are the same.
    """
    jobs = search_jobs(grid, trials=trials, select=select)
    results: dict[str, SearchResult] = {}
    for outcome in _run_all(jobs, on_event, progress, workers):
        if outcome.error is not None:
            raise outcome.error
        if outcome.result is not None:
            results[outcome.key] = outcome.result
    entries = []
    for entry in grid.entries:
        result = results.get(_key(entry))
        entries.append(entry if result is None else _with_best_settings(entry, result))
    return replace(grid, entries=tuple(entries)), [results[job.key] for job in jobs]


def search_jobs(grid: StudyGrid, *, trials: int, select: str | None) -> list[SearchJob]:
    """The searches that ``grid`` needs: one for every task and method that has something to search."""
    need_optuna()
    require_count("tune", trials)
    seed = 1 + max(entry.spec.seed for entry in grid.entries)
    first = {_key(entry): entry.spec for entry in reversed(grid.entries)}
    jobs = []
    for key in dict.fromkeys(_key(entry) for entry in grid.entries):
        spec = first[key]
        if searched_settings(spec, {}):
            jobs.append(SearchJob(key, spec, trials, grid.paths, select, (seed,)))
    return jobs


def _run_all(
    jobs: Sequence[SearchJob], on_event: OnEvent, progress: Progress | None, workers: Processes | None
) -> Iterator[SearchOutcome]:
    if workers is not None:
        return workers.run_jobs(jobs, on_event)
    return (job.run(on_event, progress=progress) for job in jobs)


def _key(entry: StudyEntry) -> str:
    fold = "" if entry.spec.fold is None else f", fold {entry.spec.fold}"  # others test on its validation rows
    return f"{entry.label} on {entry.task}{fold}"


def _with_best_settings(entry: StudyEntry, result: SearchResult) -> StudyEntry:
    return replace(entry, spec=entry.spec.changed({**entry.spec.settings, **result.settings}))
