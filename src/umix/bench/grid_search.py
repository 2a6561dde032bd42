"""A fair comparison: before the runs of a study, every method's settings are searched with the same budget."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from umix.bench.dimensions import dimensions
from umix.bench.grid import Cell, Grid
from umix.bench.loaded import load_once
from umix.bench.scout import shared_stage
from umix.bench.search import News, tune
from umix.bench.search_plan import plan_search
from umix.bench.spec import RunSpec
from umix.bench.tuned import Tuned
from umix.errors import UserError
from umix.train.progress import Progress


def search_grid(
    grid: Grid,
    *,
    trials: int,
    out: Path,
    select: str | None,
    places: Mapping[str, Any],
    progress: Progress,
    watch: Callable[[str, News], None],
) -> tuple[Grid, list[Tuned]]:
    """``grid`` with the settings that ``trials`` trials find for every task and method, and what the searches found.

    They have a seed that the study does not, the same for all. A method without settings to search stays as it is.
    """
    if trials < 1:
        raise UserError(f"--tune must be at least 1 trial, got {trials}.")
    seed = 1 + max(cell.spec.seed for cell in grid.cells)
    searches: dict[tuple[str, str], Tuned | None] = {}
    cells = []
    for cell in grid.cells:
        place = (cell.task, cell.label)
        if place not in searches:
            report = _label(watch, f"{cell.label} on {cell.task}")
            root = grid.roots.get(cell.spec.task)
            options = {**places, "root": root, "out": out, "select": select, "seeds": (seed,)}
            searches[place] = _search(cell.spec, trials, options, progress, report)
        found = searches[place]
        cells.append(cell if found is None else _with(cell, found, grid.roots.get(cell.spec.task)))
    return replace(grid, cells=tuple(cells)), [found for found in searches.values() if found is not None]


def _label(watch: Callable[[str, News], None], label: str) -> Callable[[News], None]:
    return lambda news: watch(label, news)


def _search(
    spec: RunSpec, trials: int, options: dict[str, Any], progress: Progress, watch: Callable[[News], None]
) -> Tuned | None:
    """What a search finds for the method of ``spec``; None where it has nothing to search."""
    if not dimensions(spec, {}):
        return None
    given: dict[str, Any] = {"settings": spec.settings, "preset": spec.preset}
    planned = {key: options[key] for key in ("out", "select", "seeds")}
    name = plan_search(spec.task, spec.method, **given, **planned).title
    return tune(spec.task, spec.method, trials=trials, **given, **options, name=name, progress=progress, watch=watch)


def _with(cell: Cell, found: Tuned, root: Path | None) -> Cell:
    spec = cell.spec
    settings = {**spec.settings, **found.settings}
    changed = RunSpec(task=spec.task, method=spec.method, settings=settings, seed=spec.seed, preset=spec.preset)
    return replace(cell, spec=changed, stage=shared_stage(changed, load_once(changed.plan.source, root)))
