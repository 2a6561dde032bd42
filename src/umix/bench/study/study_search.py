"""A fair comparison: the settings of every method are searched with the same budget before the runs of a study."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from umix.bench.executors.outcome import Event, OnEvent
from umix.bench.executors.processes import Processes
from umix.bench.runs.execute import CACHE
from umix.bench.runs.task_cache import load_once
from umix.bench.search.search_plan import plan_search
from umix.bench.search.search_result import Tuned
from umix.bench.search.searched_settings import dimensions
from umix.bench.search.tune import News, tune
from umix.bench.spec.run_spec import RunSpec
from umix.bench.study.shared_stages import StagePlanner
from umix.bench.study.study_runs import Cell, Grid
from umix.errors import UserError
from umix.training.progress import Progress, Silent


@final
@dataclass(frozen=True)
class Searched:
    """The result of a search, or the error with which it ended."""

    key: str
    found: Tuned | None = None
    error: str = ""
    busy: bool = False


@final
@dataclass(frozen=True, eq=False)
class SearchJob:
    """The search of one method's settings on one task, trial by trial; ``key`` is the name that people see."""

    key: str
    spec: RunSpec
    trials: int
    options: Mapping[str, Any]  # of ``tune``

    def work(self, tell: OnEvent, *, wait: bool = False, progress: Progress | None = None) -> Searched:
        spec, planned = self.spec, {name: self.options[name] for name in ("out", "select", "seeds")}
        given: dict[str, Any] = {"settings": spec.settings, "preset": spec.preset}
        try:
            name = plan_search(spec.task, spec.method, **given, **planned).title
            found = tune(
                spec.task,
                spec.method,
                trials=self.trials,
                **given,
                **self.options,
                name=name,
                progress=progress or Silent(),
                watch=lambda news: tell(self._event(news)),
            )
        except UserError as error:
            return Searched(self.key, error=str(error))
        return Searched(self.key, found)

    def died(self, error: Exception) -> Searched:
        return Searched(self.key, error=str(error))

    def _event(self, news: News) -> Event:
        best = "" if news.best is None else f"best {news.best:.3f}"
        return Event(self.key, "steps", f"trial {news.trial}", done=news.done, total=self.trials, message=best)


def search_grid(
    grid: Grid,
    *,
    trials: int,
    out: Path,
    select: str | None,
    places: Mapping[str, Any],
    on_event: OnEvent,
    progress: Progress | None = None,
    workers: Processes | None = None,
) -> tuple[Grid, list[Tuned]]:
    """``grid`` with the best settings of ``trials`` trials for every task and method, and the results of the searches.

    All searches use one seed, which the study does not use. A method without settings to search
    stays as it is. With ``workers`` several searches run at once, each in one process; their
    results are the same.
    """
    jobs = search_jobs(grid, trials=trials, out=out, select=select, places=places)
    found: dict[str, Tuned] = {}
    for searched in _all(jobs, on_event, progress, workers):
        if searched.found is None:
            raise UserError(searched.error)
        found[searched.key] = searched.found
    cache = places.get("cache")
    planner = StagePlanner(out / CACHE if cache is None else Path(cache))
    cells = []
    for cell in grid.cells:
        tuned = found.get(_key(cell))
        cells.append(cell if tuned is None else _with(cell, tuned, grid.roots.get(cell.spec.task), planner))
    return replace(grid, cells=tuple(cells)), [found[job.key] for job in jobs]


def search_jobs(
    grid: Grid, *, trials: int, out: Path, select: str | None, places: Mapping[str, Any]
) -> list[SearchJob]:
    """The searches that ``grid`` needs: one for every task and method that has something to search."""
    if trials < 1:
        raise UserError(f"--tune must be at least 1 trial, got {trials}.")
    seed = 1 + max(cell.spec.seed for cell in grid.cells)
    first = {_key(cell): cell.spec for cell in reversed(grid.cells)}
    jobs = []
    for key in dict.fromkeys(_key(cell) for cell in grid.cells):
        spec = first[key]
        options = {**places, "root": grid.roots.get(spec.task), "out": out, "select": select, "seeds": (seed,)}
        if dimensions(spec, {}):
            jobs.append(SearchJob(key, spec, trials, options))
    return jobs


def _all(
    jobs: Sequence[SearchJob], on_event: OnEvent, progress: Progress | None, workers: Processes | None
) -> Iterator[Searched]:
    if workers is not None:
        return workers.work(jobs, on_event)
    return (job.work(on_event, progress=progress) for job in jobs)


def _key(cell: Cell) -> str:
    return f"{cell.label} on {cell.task}"


def _with(cell: Cell, found: Tuned, root: Path | None, planner: StagePlanner) -> Cell:
    spec = cell.spec
    settings = {**spec.settings, **found.settings}
    changed = RunSpec(task=spec.task, method=spec.method, settings=settings, seed=spec.seed, preset=spec.preset)
    return replace(cell, spec=changed, shared=planner.first_stage(changed, load_once(changed.plan.source, root)))
