"""An Optuna study in a database, shared by several processes and resumed by later ones.

All processes together execute as many trials as the budget allows.
"""

import logging
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from umix.core.streams import stream
from umix.errors import Setting, UserError
from umix.files import is_alive, locked
from umix.nets.library import install_command, installed

if TYPE_CHECKING:
    import optuna

Pruning = Literal["median", "halving", "none"]
#: When a process first saw the trials, by number and start, that no process has claimed.
Unclaimed = dict[tuple[int, datetime | None], float]

#: How often per run Optuna decides whether to prune it: often enough to save time, rarely enough to cost none.
PRUNING_CHECKS = 10
#: Seconds without a sign of life after which a worker on another machine counts as dead.
SILENCE = 120
#: The attribute of a trial that names the process that has claimed it.
WORKER = "worker"
_ERROR, _ABOUT, _START, _DRAW, _SETTINGS = "error", "umix", "start", "draw", "settings"


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
    name: str, storage: str | None, folder: Path, *, about: Mapping[str, str], prune: Pruning
) -> "Iterator[optuna.Study]":
    """Inside the block, the study ``name``, created or resumed.

    ``about`` is stored with a new study. Resuming it with another ``about`` raises UserError.
    """
    from umix.bench.search.search_database import open_database

    with open_database(storage, folder) as database:
        with locked(folder):
            study = _study(name, database, about=about, prune=prune)
        yield study


def _study(
    name: str, database: "optuna.storages.RDBStorage", *, about: Mapping[str, str], prune: Pruning
) -> "optuna.Study":
    import optuna

    from umix.bench.search.halving_pruner import HalvingPruner

    pruners: dict[str, Callable[[], optuna.pruners.BasePruner]] = {
        "median": lambda: optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=PRUNING_CHECKS // 4),
        "halving": HalvingPruner,
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
    return sum(_is_used(trial) for trial in study.get_trials(deepcopy=False) if before is None or trial.number < before)


def _is_used(trial: "optuna.trial.FrozenTrial") -> bool:
    return trial.state.name in ("COMPLETE", "PRUNED", "RUNNING") or (
        trial.state.name == "FAIL" and _ERROR in trial.user_attrs
    )


def claim(study: "optuna.Study", trial: "optuna.Trial", *, alone: bool) -> int:
    """Store in ``trial`` that this process executes it, and return the number of the draw that its settings come from.

    With ``alone``, that is in the lock of the search and with the search's own database, it is the first draw that no other trial
    makes. So a trial that was killed before its settings were drawn is replaced by one with the same settings. On several machines
    it is the number of the trial.
    """
    draw = trial.user_attrs.get(_DRAW)
    if draw is None:
        others = [other for other in study.get_trials(deepcopy=False) if other.number != trial.number]
        taken = {other.user_attrs.get(_DRAW, other.number) for other in others if _is_used(other)}
        draw = next(number for number in count() if number not in taken) if alone else trial.number
        trial.set_user_attr(_DRAW, draw)
    trial.set_user_attr(WORKER, [socket.gethostname(), os.getpid()])
    return int(draw)


def record_settings(trial: "optuna.Trial", drawn: Mapping[str, Any]) -> None:
    """Store in ``trial`` all settings that were drawn."""
    trial.set_user_attr(_SETTINGS, dict(drawn))


def record_failure(trial: "optuna.Trial", error: UserError) -> None:
    """Store in ``trial`` that its settings caused ``error``, so that it is not tried again."""
    trial.set_user_attr(_ERROR, str(error))


def give_back(study: "optuna.Study", trial: "optuna.Trial | optuna.trial.FrozenTrial") -> None:
    """Put a trial that has not ended back into the queue as it is, with what it has reported.

    Whoever takes it goes on with its run after the last checkpoint, as if nothing had happened. A trial that was interrupted while
    its settings were drawn has failed instead, and its draw is free: what is left would not be drawn as it would have been.
    """
    from optuna.trial import TrialState

    if trial.params and _SETTINGS not in trial.user_attrs and not is_start(trial):
        study.tell(trial.number, state=TrialState.FAIL)
    else:
        study._storage.set_trial_state_values(trial._trial_id, state=TrialState.WAITING)


def requeue_dead_trials(study: "optuna.Study", *, alone: bool, unclaimed: Unclaimed) -> None:
    """Give back the trials of dead processes of this machine, and those that no process claims; give up silent ones of others.

    A process claims a trial at once. With ``alone``, one that is not claimed has lost its process. Without, it may be that of a
    process on another machine, which has two minutes. ``unclaimed`` is what this function has seen in its earlier calls.
    """
    import optuna

    for trial in study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.RUNNING]):
        host, pid = trial.user_attrs.get(WORKER, ("", 0))
        if host:
            dead = host == socket.gethostname() and (pid == os.getpid() or not is_alive(pid))  # this process is at none
        else:
            now = time.monotonic()
            dead = alone or now - unclaimed.setdefault((trial.number, trial.datetime_start), now) > SILENCE
        if dead:
            give_back(study, trial)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        optuna.storages.fail_stale_trials(study)


def others_at_work(study: "optuna.Study") -> int:
    """How many trials are being executed."""
    from optuna.trial import TrialState

    return len(study.get_trials(deepcopy=False, states=[TrialState.RUNNING]))


def reported_steps(study: "optuna.Study", trial: "optuna.Trial") -> set[int]:
    """The steps for which ``trial`` has reported a value, in this process or in one before."""
    return set(study.get_trials(deepcopy=False)[trial.number].intermediate_values)


def enqueue(study: "optuna.Study", params: Mapping[str, Any], *, start: bool) -> None:
    """Add a trial with ``params`` to the study; ``start`` marks the settings that the search starts from."""
    study.enqueue_trial(dict(params), user_attrs={_START: start})


def has_start(study: "optuna.Study") -> bool:
    """Whether the settings that the search starts from are tried, will be, or have failed."""
    return any(
        is_start(trial) and (trial.state.name == "WAITING" or _is_used(trial))
        for trial in study.get_trials(deepcopy=False)
    )


def is_start(trial: "optuna.Trial | optuna.trial.FrozenTrial") -> bool:
    """Whether ``trial`` has the settings that the search starts from."""
    return bool(trial.user_attrs.get(_START))


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


def failure_message(trial: Any) -> str | None:
    """The error that the settings of ``trial`` caused; None if they caused none."""
    error = trial.user_attrs.get(_ERROR)
    return None if error is None else str(error)
