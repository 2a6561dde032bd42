"""Hyperparameter search: TPE over runs, scored on validation only.

The first trial has the settings as they are, so the result is never worse than them on validation.
Poor trials are pruned. All trials share one first stage per seed, no matter which weights and
windows they try.
"""

import contextlib
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from umix.bench.runs.execute import execute
from umix.bench.runs.learners import learner_paths
from umix.bench.runs.paths import RunPaths
from umix.bench.search.optuna_study import (
    PRUNING_CHECKS,
    Pruning,
    all_trials,
    completed_values,
    is_start,
    make_result,
    need_optuna,
    open_study,
    others_at_work,
    quiet_optuna,
    record_failure,
    record_settings,
    retry,
    retry_dead_trials,
    sampler_for,
    trials_used,
)
from umix.bench.search.search_plan import Search, plan_search
from umix.bench.search.search_result import SearchResult
from umix.bench.search.search_space import SearchedSetting, SearchSpace
from umix.core.epoch_counts import Counts
from umix.core.selection import Threshold, best_choice, choice_score, default_rule
from umix.core.words import counted
from umix.data.task import Task
from umix.errors import MachineError, Setting, UserError
from umix.limits import require_count
from umix.run_folder import weights_folder
from umix.settings import Range
from umix.store import ensure_writable
from umix.training.engine import Engine
from umix.training.progress import Progress, Silent

if TYPE_CHECKING:
    import optuna

_PAUSE = 0.2  # seconds between two looks at the trials of other processes


@final
@dataclass(frozen=True)
class SearchProgress:
    """How far a search is, reported before every run."""

    trial: int
    seed: int
    done: int  # number of complete trials
    best: float | None  # value of the best of them


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
    prune: Pruning = "halving",
    name: str | None = None,
    storage: str | None = None,
    out: str | Path | None = None,
    paths: RunPaths | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
    watch: Callable[[SearchProgress], None] | None = None,
    trust_code: bool = False,
) -> SearchResult:
    """The best settings of ``method`` on ``task`` among ``trials``, counted over all workers of the study ``name``.

    ``space`` overrides the ranges that come with umix. A search that is in ``storage`` already
    (default: a file below ``out``) is resumed. ``out`` is short for ``paths=RunPaths(out=...)``. With
    ``trust_code`` a preset file may name code as its net.
    """
    need_optuna()
    paths = paths or RunPaths(Path("runs" if out is None else out))
    require_count("trials", trials)
    search = plan_search(
        task,
        method,
        settings=settings,
        preset=preset,
        space=space,
        seeds=seeds,
        select=select,
        name=name,
        out=paths.out,
        trust_code=trust_code,
    )
    ensure_writable(search.folder)
    searches_task = any(key.startswith("task.") for key in search.space)
    loaded_task = None if searches_task else paths.load_cached(search.base)
    trial_places = replace(paths, out=search.folder, stages=paths.stages_folder, cache=paths.cache_folder)
    start = {key: setting.default for key, setting in search.space.items() if setting.includes_default}
    opened = open_study(search.name, storage, search.folder, about=search.about(), start=start, prune=prune)
    with quiet_optuna(), opened as study:
        progress = progress or Silent()
        worker = _Worker(search, study, trials, trial_places, loaded_task, engine, progress, watch)
        while worker.execute_next():
            if worker.failure is not None and not completed_values(study):
                raise worker.failure  # the settings that the search starts from are wrong
        if not completed_values(study):
            errors = [trial.error for trial in all_trials(study) if trial.error]
            raise UserError(
                f"No trial of the study {search.name!r} has succeeded: {errors[0] if errors else 'none ended'}"
            )
        return make_result(search, study)


class _FullError(Exception):
    """Another worker took the last trial of the budget at the same time."""


@final
@dataclass(eq=False)
class _Worker:
    """Executes trials of a study one after the other."""

    search: Search
    study: "optuna.Study"
    trials: int
    paths: RunPaths
    task: Task | None
    engine: Engine | None
    progress: Progress
    watch: Callable[[SearchProgress], None] | None
    failure: UserError | None = field(default=None, init=False)
    _waits: bool = field(default=False, init=False)

    def execute_next(self) -> bool:
        """Execute a trial, or wait a moment where other processes are at the last ones; False if all have ended."""
        retry_dead_trials(self.study)
        if trials_used(self.study) < self.trials:
            self.study.optimize(self.trial, n_trials=1, catch=(UserError, _FullError))
            return True
        running = others_at_work(self.study)
        if running and not self._waits:
            self.progress.note(f"Other processes are at {counted(running, 'trial')} of this search: waiting for them.")
        self._waits = True
        time.sleep(_PAUSE if running else 0)
        return running > 0

    def trial(self, trial: "optuna.Trial") -> float:
        """The mean validation score of the settings that ``trial`` draws."""
        from optuna.exceptions import StorageInternalError

        try:
            draw = trials_used(self.study, before=trial.number)
            if draw >= self.trials:
                raise _FullError
            self.study.sampler = sampler_for(self.search.name, draw)
            drawn = {key: _draw(trial, key, setting) for key, setting in self.search.space.items()}
            record_settings(trial, drawn)
            scores: list[float] = []
            for seed in self.search.seeds:
                scores.append(self._score(trial, drawn, seed, scores))
        except UserError as error:
            record_failure(trial, error)
            self.failure = error
            raise
        except (KeyboardInterrupt, MachineError, OSError, MemoryError, StorageInternalError):
            with contextlib.suppress(Exception):  # of the database; then it is the trial of a dead process
                retry(self.study, trial.number)
            raise
        return sum(scores) / len(scores)

    def _score(self, trial: "optuna.Trial", drawn: Mapping[str, Any], seed: int, before: Sequence[float]) -> float:
        """The validation score of the run with ``seed``; ``before`` are the scores of earlier seeds.

        Only validation counts are read, never test counts.
        """
        from optuna import TrialPruned

        spec = self.search.spec(drawn, seed)
        directory, epochs = self.search.folder / spec.directory_name, spec.plan.fit.epochs
        if self.watch is not None:
            values = completed_values(self.study)
            self.watch(SearchProgress(trial.number, seed, len(values), max(values, default=None)))

        def on_epoch(epoch: int, val: Counts) -> None:
            check = (epoch + 1) * PRUNING_CHECKS // epochs
            if check == epoch * PRUNING_CHECKS // epochs:
                return  # the database is queried ten times per run, not every epoch
            scores = [*before, validation_score(val, self.search.select, spec.plan.evaluation.threshold)]
            trial.report(sum(scores) / len(scores), len(before) * PRUNING_CHECKS + check)
            if trial.should_prune():
                for folder in (directory, learner_paths(self.paths, spec).out):  # a pruned run is never resumed
                    shutil.rmtree(folder, ignore_errors=True)
                raise TrialPruned

        try:
            record = execute(
                spec,
                paths=self.paths,
                task=self.task,
                engine=self.engine,
                progress=self.progress,
                on_epoch=on_epoch,
            )
        finally:
            self.progress.finish()
        shutil.rmtree(weights_folder(directory), ignore_errors=True)  # trials are not used for predictions
        val = record.threshold_counts["val"]
        trial.set_user_attr("select", selection_rule(val, self.search.select))
        return validation_score(val, self.search.select, record.own_threshold)


def _draw(trial: "optuna.Trial", key: str, setting: SearchedSetting) -> Any:
    values = setting.values
    if is_start(trial) and not setting.includes_default:
        return setting.default  # outside of the searched values, so the sampler cannot suggest it
    if not isinstance(values, Range):
        return trial.suggest_categorical(key, values)
    if setting.whole:
        return trial.suggest_int(key, int(values.low), int(values.high), log=values.log)
    return setting.rounded(trial.suggest_float(key, values.low, values.high, log=values.log))


def selection_rule(val: Counts, select: str | None) -> str:
    """The selection rule: ``select`` if given, else ``default_rule``: the worst group, or the classes where no groups choose."""
    return select or default_rule(val)


def validation_score(val: Counts, select: str | None, threshold: Threshold = "off") -> float:
    """The score of the epoch that the rule ``select`` chooses, with ``threshold`` ``biases`` of epoch and threshold together.

    The rule ``last`` chooses an epoch but has no score. Its score is the rate of the worst group or
    class in that epoch.
    """
    rule = selection_rule(val, select)
    try:
        choice = best_choice(val, rule, threshold)
    except ValueError:
        raise UserError(
            Setting("select", rule),
            " must have a score on validation, but this task gives it none; select balanced or average.",
        ) from None
    return choice_score(val, selection_rule(val, None) if rule == "last" else rule, choice)
