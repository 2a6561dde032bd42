"""An Optuna study in a database, shared by several processes and resumed by later ones.

All processes together execute as many trials as the budget allows. A trial of a process that died is queued again by Optuna's
heartbeat: another process takes its settings, and its run goes on from its last checkpoint. The best settings are written as a
preset.
"""

import logging
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from umix.bench.search.search_plan import Search
from umix.bench.search.search_result import SearchResult, Trial
from umix.bench.spec.plan import setting_tables
from umix.bench.spec.presets import write_preset
from umix.core.streams import stream
from umix.errors import Setting, UserError
from umix.models.library import install_command, installed
from umix.store import locked
from umix.version import __version__

if TYPE_CHECKING:
    import optuna

Pruning = Literal["median", "halving", "none"]

#: How often per run Optuna decides whether to prune it: often enough to save time, rarely enough to cost none.
PRUNING_CHECKS = 10
#: Seconds without a heartbeat after which the process of a trial counts as dead.
SILENCE = 90
_ERROR, _ABOUT, _START, _SETTINGS = "error", "umix", "start", "settings"


def need_optuna() -> None:
    """Raises UserError that says what to install if Optuna is missing."""
    if not installed("optuna"):
        raise UserError(f"A search needs Optuna, which is not installed: {install_command('optuna', 'search')}.")


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Inside the block, Optuna logs nothing."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(logging.CRITICAL)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


@contextmanager
def open_study(
    name: str,
    storage: str | None,
    folder: Path,
    *,
    about: Mapping[str, str],
    start: Mapping[str, Any],
    prune: Pruning,
) -> "Iterator[optuna.Study]":
    """Inside the block, the study ``name``, created or resumed.

    ``about`` is stored with a new study, and ``start`` is its first trial. Resuming it with another ``about`` raises UserError.
    """
    from umix.bench.search.search_database import open_database

    with open_database(storage, folder) as database:
        with locked(folder):
            study = _study(name, database, about=about, start=start, prune=prune)
        yield study


def _study(
    name: str,
    database: "optuna.storages.RDBStorage",
    *,
    about: Mapping[str, str],
    start: Mapping[str, Any],
    prune: Pruning,
) -> "optuna.Study":
    import optuna

    pruners: dict[str, Callable[[], optuna.pruners.BasePruner]] = {
        "median": lambda: optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=PRUNING_CHECKS // 4),
        "halving": lambda: optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=2),
        "none": optuna.pruners.NopPruner,
    }
    study = optuna.create_study(
        storage=database,
        study_name=name,
        direction="maximize",
        load_if_exists=True,
        pruner=pruners[prune](),
    )
    stored = study.user_attrs.get(_ABOUT)
    if stored is None:
        study.enqueue_trial(dict(start), user_attrs={_START: True}, skip_if_exists=True)
        study.set_user_attr(_ABOUT, dict(about))
    elif stored != about:
        changed = next(key for key in about if stored.get(key) != about[key])
        raise UserError(
            f"The study {name!r} was begun with other {changed} ({stored.get(changed)}, now {about[changed]}); "
            "choose another ",
            Setting("name"),
            ".",
        )
    return study


def sampler_for(name: str, draw: int) -> "optuna.samplers.BaseSampler":
    """The TPE sampler for the ``draw``-th settings of the study ``name``.

    Every draw has its own seed, so other workers and resumed studies never repeat one. Settings are drawn one by one, because
    Optuna would draw all at once before it is known which draw a trial makes.
    """
    import optuna

    seed = int(stream(0, "search", name, draw).integers(2**31))
    return optuna.samplers.TPESampler(seed=seed, constant_liar=True, multivariate=False)


def trials_used(study: "optuna.Study", *, before: int | None = None) -> int:
    """How many trials of the budget all workers have used: complete, pruned, running, or failed by their settings.

    With ``before``, only trials with a smaller number count.
    """
    return sum(
        trial.state.name in ("COMPLETE", "PRUNED", "RUNNING") or failure_message(trial) is not None
        for trial in study.get_trials(deepcopy=False)
        if before is None or trial.number < before
    )


def others_at_work(study: "optuna.Study") -> int:
    """How many trials are being executed."""
    from optuna.trial import TrialState

    return len(study.get_trials(deepcopy=False, states=[TrialState.RUNNING]))


def record_settings(trial: "optuna.Trial", drawn: Mapping[str, Any]) -> None:
    """Store in ``trial`` all settings that were drawn."""
    trial.set_user_attr(_SETTINGS, dict(drawn))


def record_failure(trial: "optuna.Trial", error: UserError) -> None:
    """Store in ``trial`` that its settings caused ``error``, so that it is not tried again."""
    trial.set_user_attr(_ERROR, str(error))


def failure_message(trial: "optuna.trial.FrozenTrial") -> str | None:
    """The error that the settings of ``trial`` caused; None if they caused none."""
    error = trial.user_attrs.get(_ERROR)
    return None if error is None else str(error)


def is_start(trial: "optuna.Trial | optuna.trial.FrozenTrial") -> bool:
    """Whether ``trial`` has the settings that the search starts from."""
    return bool(trial.user_attrs.get(_START))


def retry(study: "optuna.Study", number: int) -> None:
    """Queue the settings of an interrupted trial again."""
    from umix.bench.search.search_database import queue_again

    queue_again(study, study.get_trials(deepcopy=False)[number])


def retry_dead_trials(study: "optuna.Study") -> None:
    """Queue the trials of dead processes again.

    Optuna fails those whose heartbeat has stopped. It knows nothing of a process that died before the first heartbeat: such a
    trial has no settings long after it began.
    """
    import optuna

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        optuna.storages.fail_stale_trials(study)
    long_ago = datetime.now() - timedelta(seconds=SILENCE)
    for trial in study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.RUNNING]):
        if _SETTINGS not in trial.user_attrs and trial.datetime_start is not None and trial.datetime_start < long_ago:
            study.tell(trial.number, state=optuna.trial.TrialState.FAIL, skip_if_finished=True)
            retry(study, trial.number)


def importances(study: "optuna.Study") -> dict[str, float]:
    """The share of the score's variance that each setting explains; empty if there are too few trials."""
    import optuna

    complete = study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.COMPLETE])
    if len({trial.value for trial in complete}) < 4 or len(complete[0].params) < 2:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna warns about its own estimators
        try:
            evaluator = optuna.importance.PedAnovaImportanceEvaluator()
            return dict(optuna.importance.get_param_importances(study, evaluator=evaluator))
        except (RuntimeError, ValueError):
            return {}


def completed_values(study: "optuna.Study") -> list[float]:
    """The values of all complete trials."""
    return [trial.value for trial in all_trials(study) if trial.value is not None]


def all_trials(study: "optuna.Study") -> list[Trial]:
    """All trials by number, without those whose process failed for another reason than their settings."""
    states: dict[str, Literal["complete", "pruned", "failed", "running"]]
    states = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed", "RUNNING": "running"}
    trials = []
    for trial in study.get_trials(deepcopy=False):
        state, error = states.get(trial.state.name), failure_message(trial)
        if state is None or (state == "failed" and error is None):
            continue
        value = trial.value if state == "complete" else None
        drawn = dict(trial.user_attrs.get(_SETTINGS, {}))
        trials.append(Trial(trial.number, state, value, drawn, is_start(trial), error))
    return trials


def _check_settings(search: Search, trial: Trial) -> None:
    """Raise UserError if a stored trial has settings that the search cannot have drawn: a shared database may name code."""
    for key in {**search.space, **trial.settings}:
        setting = search.space.get(key)
        if setting is None or key not in trial.settings or not setting.allows(trial.settings[key]):
            raise UserError(
                f"The study {search.name!r} must hold trials of this search, but trial {trial.number} has "
                f"{key}={trial.settings.get(key)!r}; choose another ",
                Setting("name"),
                ".",
            )


def make_result(search: Search, study: "optuna.Study") -> SearchResult:
    """The result of ``search``; its best settings are also written as a preset file."""
    trials = all_trials(study)
    order = sorted(trials, key=lambda trial: (-math.inf if trial.value is None else trial.value, -trial.number))[::-1]
    best, first = order[0], next((trial for trial in trials if trial.start and trial.value is not None), None)
    _check_settings(search, best)
    best_settings = {**search.shared, **best.settings}
    path = search.out / f"tuned-{search.name}.toml"
    select = study.get_trials(deepcopy=False)[best.number].user_attrs["select"]
    counts = {state: sum(trial.state == state for trial in trials) for state in ("complete", "pruned", "failed")}
    value = best.value if best.value is not None else math.nan
    default = None if first is None else first.value
    notes = [
        f"{search.base.method} on {search.base.plan.source.title}: the best of {len(trials)} trials on validation ({__version__}).",
        f"Chosen by --select {select}, mean over seeds {', '.join(map(str, search.seeds))}: {value:.4f}"
        + ("." if default is None else f"; the settings it started from: {default:.4f}."),
        f"Trials that ended {counts['complete']}, cut short {counts['pruned']}, failed {counts['failed']}; "
        f"searched: {', '.join(search.space)}.",
        f"{time.strftime('%Y-%m-%d')}; use it with: umix run TASK {search.base.method} --preset {path.name}",
    ]
    base = search.base
    settings = {**base.settings, **best_settings}
    tables = setting_tables(base.task, base.method, settings, preset_name=base.preset, trust_code=base.trust_code)
    write_preset(path, "tuned", tables, notes=notes)
    return SearchResult(
        task=base.task,
        method=base.method,
        name=search.name,
        select=select,
        seeds=search.seeds,
        value=value,
        default=default,
        settings=best_settings,
        trials=tuple(order),
        importances=importances(study),
        preset=path,
    )
