"""A fair comparison: the settings of every method are searched with the same budget before the runs of a study."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

from umix.bench.executors.outcome import Event, OnEvent
from umix.bench.executors.processes import Processes
from umix.bench.runs.places import Places
from umix.bench.search.search_plan import plan_search
from umix.bench.search.search_result import Tuned
from umix.bench.search.searched_settings import dimensions
from umix.bench.search.tune import News, tune
from umix.bench.spec.run_spec import RunSpec
from umix.bench.study.shared_stages import StagePlanner
from umix.bench.study.study_grid import StudyEntry, StudyGrid
from umix.errors import Setting, UserError
from umix.training.progress import Progress, Silent


@final
@dataclass(frozen=True)
class Searched:
    """The result of a search, or the error with which it ended."""

    key: str
    found: Tuned | None = None
    error: str | UserError = ""
    busy: bool = False


@final
@dataclass(frozen=True, eq=False)
class SearchJob:
    """The search of one method's settings on one task, trial by trial; ``key`` is the name that people see."""

    key: str
    spec: RunSpec
    trials: int
    places: Places
    select: str | None
    seeds: tuple[int, ...]

    def work(self, tell: OnEvent, *, wait: bool = False, progress: Progress | None = None) -> Searched:
        spec = self.spec
        given: dict[str, Any] = {
            "settings": spec.settings,
            "preset": spec.preset,
            "select": self.select,
            "seeds": self.seeds,
        }
        try:
            name = plan_search(spec.task, spec.method, **given, out=self.places.out).title
            found = tune(
                spec.task,
                spec.method,
                trials=self.trials,
                **given,
                places=self.places,
                name=name,
                progress=progress or Silent(),
                watch=lambda news: tell(self._event(news)),
            )
        except UserError as error:
            return Searched(self.key, error=error)
        return Searched(self.key, found)

    def died(self, error: Exception) -> Searched:
        return Searched(self.key, error=str(error))

    def _event(self, news: News) -> Event:
        best = "" if news.best is None else f"best {news.best:.3f}"
        return Event(self.key, "steps", f"trial {news.trial}", done=news.done, total=self.trials, message=best)


def search_grid(
    grid: StudyGrid,
    *,
    trials: int,
    select: str | None,
    on_event: OnEvent,
    progress: Progress | None = None,
    workers: Processes | None = None,
) -> tuple[StudyGrid, list[Tuned]]:
    """``grid`` with the best settings of ``trials`` trials for every task and method, and the results of the searches.

    All searches use one seed, which the study does not use. A method without settings to search
    stays as it is. With ``workers`` several searches run at once, each in one process; their
    results are the same.
    """
    jobs = search_jobs(grid, trials=trials, select=select)
    found: dict[str, Tuned] = {}
    for searched in _all(jobs, on_event, progress, workers):
        if searched.found is None:
            raise UserError(searched.error)
        found[searched.key] = searched.found
    planner = StagePlanner(grid.places.cache_folder)
    entries = []
    for entry in grid.entries:
        tuned = found.get(_key(entry))
        entries.append(entry if tuned is None else _with(entry, tuned, grid.places, planner))
    return replace(grid, entries=tuple(entries)), [found[job.key] for job in jobs]


def search_jobs(grid: StudyGrid, *, trials: int, select: str | None) -> list[SearchJob]:
    """The searches that ``grid`` needs: one for every task and method that has something to search."""
    if trials < 1:
        raise UserError(Setting("tune"), f" must be at least 1 trial, got {trials}.")
    seed = 1 + max(entry.spec.seed for entry in grid.entries)
    first = {_key(entry): entry.spec for entry in reversed(grid.entries)}
    jobs = []
    for key in dict.fromkeys(_key(entry) for entry in grid.entries):
        spec = first[key]
        if dimensions(spec, {}):
            jobs.append(SearchJob(key, spec, trials, grid.places, select, (seed,)))
    return jobs


def _all(
    jobs: Sequence[SearchJob], on_event: OnEvent, progress: Progress | None, workers: Processes | None
) -> Iterator[Searched]:
    if workers is not None:
        return workers.work(jobs, on_event)
    return (job.work(on_event, progress=progress) for job in jobs)


def _key(entry: StudyEntry) -> str:
    return f"{entry.label} on {entry.task}"


def _with(entry: StudyEntry, found: Tuned, places: Places, planner: StagePlanner) -> StudyEntry:
    spec = entry.spec
    settings = {**spec.settings, **found.settings}
    changed = RunSpec(task=spec.task, method=spec.method, settings=settings, seed=spec.seed, preset=spec.preset)
    return replace(entry, spec=changed, shared=planner.first_stage(changed, places.load_cached(changed)))
