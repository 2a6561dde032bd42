"""``umix.tune``: a search for settings from Python."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from umix.api.train import flat_settings, net_setting
from umix.bench.runs.paths import RunPaths
from umix.bench.search.search_result import SearchResult
from umix.bench.search.search_space import SearchSpace
from umix.bench.search.tune import tune as search
from umix.bench.spec.task_reference import reference_to
from umix.data.memory_source import MemorySource
from umix.errors import UserError
from umix.settings import Range

if TYPE_CHECKING:
    from umix.data.task import Task


def tune(
    task: "Task | str | Path",
    method: str,
    *,
    trials: int = 50,
    space: SearchSpace | None = None,
    seeds: Sequence[int] = (0,),
    net: str | Mapping[str, Any] | None = None,
    preset: str = "default",
    select: str | None = None,
    out: str | Path = "runs",
    root: str | Path | None = None,
    cache: str | Path | None = None,
    name: str | None = None,
    storage: str | None = None,
    trust_code: bool = False,
    settings: Mapping[str, Any] | None = None,
    **more: Any,
) -> SearchResult:
    """The best settings of ``method`` on ``task`` by validation alone; test data are never looked at.

    The result's ``settings``, those found and those fixed, go to ``train``: ``umix.train(task, method, **best.settings)``.

    Args:
        task: a task, the name of one, or the path of your own data with ``label=...``.
        method: a method's name.
        trials: how many settings to try; the first are the ones that the preset gives.
        space: ranges by setting, ``{"eta": Range(low=1, high=100, log=True), "sigma": [0.5, 1.0]}``, beside the method's own.
        seeds: seeds of every trial; its score is their mean.
        net: a net's name or options.
        preset: named settings to start from.
        select: rule that scores an epoch; default ``worst``, the worst group, or ``balanced`` without groups.
        out: folder of the search and of its runs. The same call goes on with an interrupted search.
        root: folder of a benchmark's files.
        cache: folder of decoded images and features.
        name: name of the search; several processes with the same name and storage work on it together.
        storage: database URL; default a file below ``out``.
        trust_code: whether a preset file may name code as its net, ``module:factory``.
        settings: settings that are fixed, as ``{"sigma": 1.0, "fit.epochs": 5}``.
        more: the same by name, as ``sigma=1.0`` or ``fit={"epochs": 5}``; they win over those in ``settings``.

    """
    for key, values in (space or {}).items():
        if not isinstance(values, Range | list):
            raise UserError(f"space[{key!r}] must be a umix.Range or a list of values, got {values!r}.")
    reference = reference_to(task)
    in_memory = MemorySource.parse(reference.name)
    if name is None and in_memory is not None:  # frames have no name of their own to tell searches apart by
        name = f"{in_memory['label']}-{method}-{in_memory['fingerprint'][:8]}"
    fixed = flat_settings({**(settings or {}), **more}) | net_setting(net)
    paths = RunPaths(
        Path(out),
        root=None if root is None else Path(root),
        cache=None if cache is None else Path(cache),
        tasks=reference.tasks,
    )
    result = search(
        reference.name,
        method,
        trials=trials,
        settings=reference.settings | fixed,
        preset=preset,
        space=space,
        seeds=seeds,
        select=select,
        name=name,
        storage=storage,
        paths=paths,
        trust_code=trust_code,
    )
    return replace(result, settings=fixed | result.settings)
