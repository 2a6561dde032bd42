"""Search for hyperparameters: TPE over runs, judged on validation only.

The first trial is the settings as they are, so the result is never below them on validation. Poor trials are cut short. All trials
share one first stage per seed, whatever weights and windows they try.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from umix.bench.runs.execute import execute
from umix.bench.runs.places import Places
from umix.bench.search.optuna_study import (
    LOOKS,
    Pruning,
    begin,
    blame,
    draws_of,
    is_start,
    open_study,
    queue,
    quiet_optuna,
    revive,
    spent,
)
from umix.bench.search.read_trials import ended_values, result
from umix.bench.search.search_plan import Search, plan_search
from umix.bench.search.search_result import Tuned
from umix.bench.search.search_space import SearchSpace
from umix.bench.search.searched_settings import Dimension
from umix.bench.search.validation_score import rule_of, validation_score
from umix.core.selection import Counts
from umix.data.task import Task
from umix.errors import Setting, UserError
from umix.files import ensure_writable
from umix.run_folder import weights_folder
from umix.settings import Range
from umix.training.engine import Engine
from umix.training.progress import Progress, Silent

if TYPE_CHECKING:
    import optuna


@final
@dataclass(frozen=True)
class News:
    """What a search tells whoever is watching, before every run."""

    trial: int
    seed: int
    done: int
    best: float | None


def tune(
    task: str,
    method: str,
    *,
    trials: int = 50,
    settings: Mapping[str, Any] | None = None,
    preset: str = "default",
    space: SearchSpace | None = None,
    seeds: Sequence[int] = (0,),
    select: str | None = None,
    prune: Pruning = "median",
    name: str | None = None,
    storage: str | None = None,
    out: str | Path | None = None,
    places: Places | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
    watch: Callable[[News], None] | None = None,
) -> Tuned:
    """The best settings of ``method`` on ``task`` among ``trials``, counted over all workers of the study ``name``.

    ``space`` goes over the ranges that come with umix. A search in ``storage`` (default: a file below ``out``) goes on where it
    was. ``out`` is short for ``places=Places(out=...)``.
    """
    places = places or Places(Path("runs" if out is None else out))
    if trials < 1:
        raise UserError(Setting("trials"), f" must be at least 1, got {trials}.")
    search = plan_search(
        task,
        method,
        settings=settings,
        preset=preset,
        space=space,
        seeds=seeds,
        select=select,
        name=name,
        out=places.out,
    )
    ensure_writable(search.folder)
    varies = any(key.startswith("task.") for key in search.space)
    loaded = None if varies else places.load_cached(search.base)
    below = replace(places, out=search.folder, stages=places.stages_folder, cache=places.cache_folder)
    opened = open_study(search.name, storage, search.folder, about=search.about(), prune=prune)
    with quiet_optuna(), opened as study:
        if not study.get_trials(deepcopy=False):
            queue(study, {key: d.default for key, d in search.space.items() if d.holds_default}, start=True)
        worker = _Worker(search, study, trials, below, loaded, engine, progress or Silent(), watch)
        while not worker.full and spent(study) < trials:
            revive(study)
            study.optimize(worker.trial, n_trials=1, catch=(UserError, _FullError))
            if worker.failure is not None and not ended_values(study):
                raise worker.failure  # the settings that everything starts from are wrong
        if not ended_values(study):
            raise UserError(f"No trial of the study {search.name!r} has ended yet; its other workers are still at it.")
        return result(search, study)


class _FullError(Exception):
    """Another worker took the last trial of the budget in the same moment."""


@final
@dataclass(eq=False)
class _Worker:
    """Executes trials of a study one after the other."""

    search: Search
    study: "optuna.Study"
    trials: int
    places: Places
    task: Task | None
    engine: Engine | None
    progress: Progress
    watch: Callable[[News], None] | None
    full: bool = field(default=False, init=False)
    failure: UserError | None = field(default=None, init=False)

    def trial(self, trial: "optuna.Trial") -> float:
        """The mean validation score of the settings that ``trial`` draws."""
        begin(trial)
        if spent(self.study, before=trial.number) >= self.trials:
            self.full = True
            raise _FullError
        self.study.sampler = draws_of(self.search.name, trial.number)
        drawn = {key: _draw(trial, key, dimension) for key, dimension in self.search.space.items()}
        trial.set_user_attr("settings", drawn)
        try:
            scores: list[float] = []
            for seed in self.search.seeds:
                scores.append(self._score(trial, drawn, seed, scores))
        except UserError as error:
            blame(trial, error)
            self.failure = error
            raise
        except KeyboardInterrupt:
            queue(self.study, trial.params, start=is_start(trial))  # to go on with first
            raise
        return sum(scores) / len(scores)

    def _score(self, trial: "optuna.Trial", drawn: Mapping[str, Any], seed: int, before: Sequence[float]) -> float:
        """The validation score of one run; test counts do not come this far."""
        from optuna import TrialPruned

        spec = self.search.spec(drawn, seed)
        directory, epochs = self.search.folder / spec.directory_name, spec.plan.fit.epochs
        if self.watch is not None:
            values = ended_values(self.study)
            self.watch(News(trial.number, seed, len(values), max(values, default=None)))

        def on_epoch(epoch: int, val: Counts) -> None:
            look = (epoch + 1) * LOOKS // epochs
            if look == epoch * LOOKS // epochs:
                return  # the database is asked ten times per run, not every epoch
            now = [*before, validation_score(val, self.search.select)]
            trial.report(sum(now) / len(now), len(before) * LOOKS + look)
            if trial.should_prune():
                shutil.rmtree(directory, ignore_errors=True)  # half a run is no run
                raise TrialPruned

        try:
            record = execute(
                spec,
                places=self.places,
                task=self.task,
                engine=self.engine,
                progress=self.progress,
                on_epoch=on_epoch,
            )
        finally:
            self.progress.finish()
        shutil.rmtree(weights_folder(directory), ignore_errors=True)  # nobody predicts with a trial
        val = record.split_counts["val"].arrays()
        trial.set_user_attr("select", rule_of(val, self.search.select))
        return validation_score(val, self.search.select)


def _draw(trial: "optuna.Trial", key: str, dimension: Dimension) -> Any:
    values = dimension.values
    if is_start(trial) and not dimension.holds_default:
        return dimension.default  # outside of what is searched, so not for the sampler to know
    if not isinstance(values, Range):
        return trial.suggest_categorical(key, values)
    if dimension.whole:
        return trial.suggest_int(key, int(values.low), int(values.high), log=values.log)
    return dimension.written(trial.suggest_float(key, values.low, values.high, log=values.log))
