"""``umix.train``: one run from Python, in memory or in a folder."""

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from umix.api.result import RunResult
from umix.bench.runs.execute import execute, train_in_memory
from umix.bench.runs.folds import fold_settings
from umix.bench.runs.learners import learner_specs
from umix.bench.runs.paths import RunPaths
from umix.bench.spec.run_spec import RunSpec
from umix.bench.spec.task_reference import reference_to
from umix.data.registry import refuse_folds
from umix.errors import UserError
from umix.terminal import Bars
from umix.training.progress import Progress, Silent

if TYPE_CHECKING:
    from umix.data.task import Task


def flat_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """``{"fit": {"epochs": 5}}`` as ``{"fit.epochs": 5}``; other values, and tables inside of a part, stay as they are.

    >>> flat_settings({"eta": 3, "fit": {"epochs": 5}})
    {'eta': 3, 'fit.epochs': 5}
    """
    if not isinstance(settings, Mapping):
        raise UserError(
            f'settings must be a dict of names and values, such as {{"fit.epochs": 5}}, got {type(settings).__name__}.'
        )
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping) and "." not in key:
            flat |= {f"{key}.{name}": inner for name, inner in value.items()}
        else:
            flat[key] = value
    return flat


def net_setting(net: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """The settings of a net given as its name, or as options with its ``name`` among them."""
    if net is None:
        return {}
    if not isinstance(net, str | Mapping):
        raise UserError(
            f"net must be a name or a dict of options with the name among them, got {type(net).__name__}; an estimator as an "
            "object goes to umix.UMIXClassifier(estimator=...)."
        )
    return {"net": net} if isinstance(net, str) else flat_settings({"net": net})


def train(
    task: "Task | str | Path",
    method: str = "best",
    *,
    net: str | Mapping[str, Any] | None = None,
    seed: int = 0,
    preset: str = "default",
    out: str | Path | None = None,
    root: str | Path | None = None,
    cache: str | Path | None = None,
    verbose: bool = False,
    trust_code: bool = False,
    folds: int | None = None,
    settings: Mapping[str, Any] | None = None,
    **more: Any,
) -> RunResult:
    """Train ``method`` on ``task`` and return the result.

    Args:
        task: a task, the name of one (``umix.TASKS``), or the path of your own data with ``label=...`` and ``groups=...``.
        method: a method's name (``umix.METHODS``); ``best`` tries the others and trains the one that does best on validation.
        net: a net's name, or its options with the name among them: ``{"name": "mlp", "hidden": [64]}``.
        seed: seed of everything random.
        preset: named settings to start from, or a TOML file of your own.
        out: folder of runs. The run then has a folder below it like a run of the command line: if it is finished it is loaded, if
            it was interrupted it goes on. Without it everything stays in memory.
        root: folder of a benchmark's files.
        cache: folder for decoded images and features of a frozen net. Default: ``cache`` below ``out``; in memory, none.
        verbose: show progress bars.
        trust_code: whether a preset file may name code as its net, ``module:factory``, which is then imported. A ``net`` that is
            given here may.
        folds: divide the rows into so many folds and train once for each, which is then test. The result has the rates over all
            rows, each tested once, and the runs as ``folds``; for predictions train without folds.
        settings: hyperparameters of the method and of every other part of the run, as ``{"eta": 3, "fit.epochs": 5}``.
        more: the same by name, as ``eta=3`` or ``fit={"epochs": 5}``; they win over those in ``settings``.

    >>> result = train("four_moons", "erm", fit={"epochs": 2})
    >>> sorted(result.summary().groups)
    ['moon 0', 'moon 1', 'moon 2', 'moon 3']

    """
    reference = reference_to(task)
    refuse_folds(reference.name, folds)
    given = reference.settings | flat_settings(settings or {}) | flat_settings(more) | net_setting(net)
    tasks = reference.tasks if folds is None else {}  # a task that is loaded already is divided otherwise
    results = []
    for fold in fold_settings(folds):
        spec = RunSpec(
            task=reference.name,
            method=method,
            settings=given | fold,
            seed=seed,
            preset=preset,
            trust_code=trust_code,
        )
        paths = RunPaths(
            Path("runs" if out is None else out),
            root=None if root is None else Path(root),
            cache=None if cache is None else Path(cache),
            tasks=tasks,
        )
        with Bars() if verbose else nullcontext(Silent()) as progress:
            if isinstance(progress, Bars):
                progress.label = f"{method}, {spec.words}"
            results.append(_trained(spec, paths, in_memory=out is None, progress=progress))
    return results[0] if folds is None else RunResult.of_folds(results)


def _trained(spec: RunSpec, paths: RunPaths, *, in_memory: bool, progress: Progress) -> RunResult:
    if in_memory:
        return RunResult.in_memory(*train_in_memory(spec, paths, cache=paths.cache, progress=progress))
    record = execute(spec, paths=paths, progress=progress)
    # What the caller has named, or trusted, may be imported; a record that was there before may name something else.
    named = {one.plan.net.title for one in learner_specs(spec)}
    return RunResult.in_folder(record, trust_code=spec.trust_code or record.net in named)
