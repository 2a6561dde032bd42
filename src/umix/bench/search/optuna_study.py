"""An Optuna study in a database, shared by several processes and resumed by later ones.

All processes together execute as many trials as the budget allows.
"""

import logging
import os
import socket
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from umix.core.streams import stream
from umix.errors import Setting, UserError
from umix.files import is_alive
from umix.nets.library import install_command, installed

if TYPE_CHECKING:
    import optuna

Pruning = Literal["median", "halving", "none"]

#: How often per run Optuna decides whether to prune it: often enough to save time, rarely enough to cost none.
PRUNING_CHECKS = 10
_BEAT = 30  # seconds between two heartbeats of a worker
_SILENCE = 120  # seconds without a heartbeat after which a worker on another machine counts as dead
_WORKER, _ERROR, _ABOUT, _START = "worker", "error", "umix", "start"


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
    database = _storage(storage, folder)
    try:
        yield _study(name, database, about=about, prune=prune)
    finally:
        database.remove_session()
        database.engine.dispose()  # else its connections stay open until they are garbage-collected


def _study(
    name: str, database: "optuna.storages.RDBStorage", *, about: Mapping[str, str], prune: Pruning
) -> "optuna.Study":
    import optuna

    pruners: dict[str, Callable[[], optuna.pruners.BasePruner]] = {
        "median": lambda: optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=PRUNING_CHECKS // 4),
        # As races do: after 1, 2, 4 and 8 tenths of the epochs only the better half goes on.
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


def _storage(url: str | None, folder: Path) -> "optuna.storages.RDBStorage":
    import optuna
    import sqlalchemy

    if url is None:
        folder.mkdir(parents=True, exist_ok=True)
        url = f"sqlite:///{(folder / 'study.db').absolute()}"
    for short in ("postgresql://", "postgres://"):
        if url.startswith(short):
            url = url.replace(short, "postgresql+psycopg://", 1)
    options = {"connect_args": {"timeout": _SILENCE}} if url.startswith("sqlite") else {"pool_pre_ping": True}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)  # heartbeats are experimental
            return optuna.storages.RDBStorage(
                url, engine_kwargs=options, heartbeat_interval=_BEAT, grace_period=_SILENCE
            )
    except ImportError:
        kind = url.partition(":")[0].partition("+")[0]
        fix = "pip install 'umix[postgresql]'" if kind == "postgresql" else "install it, or use sqlite or postgresql"
        raise UserError(
            Setting("storage"), f" must have a driver for {kind} databases, but it is not installed: {fix}."
        ) from None
    except (sqlalchemy.exc.ArgumentError, sqlalchemy.exc.DBAPIError) as error:
        reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise UserError(
            Setting("storage"),
            f" must be the URL of a database that can be opened, such as sqlite:///study.db, but: {reason}.",
        ) from None


def sampler_for(name: str, number: int) -> "optuna.samplers.BaseSampler":
    """The TPE sampler for trial ``number`` of the study ``name``.

    Every trial has its own seed, so other workers and resumed studies never repeat its draws.
    """
    import optuna

    seed = int(stream(0, "search", name, number).integers(2**31))
    return optuna.samplers.TPESampler(seed=seed, constant_liar=True)


def trials_used(study: "optuna.Study", *, before: int | None = None) -> int:
    """How many trials of the budget all workers have used: complete, pruned, running, or failed by their settings.

    With ``before``, only trials with a smaller number count.
    """
    from optuna.trial import TrialState

    used = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.RUNNING)
    return sum(
        trial.state in used or (trial.state == TrialState.FAIL and _ERROR in trial.user_attrs)
        for trial in study.get_trials(deepcopy=False)
        if before is None or trial.number < before
    )


def claim(trial: "optuna.Trial") -> None:
    """Store in ``trial`` that this process executes it."""
    trial.set_user_attr(_WORKER, [socket.gethostname(), os.getpid()])


def record_failure(trial: "optuna.Trial", error: UserError) -> None:
    """Store in ``trial`` that its settings caused ``error``, so that it is not tried again."""
    trial.set_user_attr(_ERROR, str(error))


def requeue_dead_trials(study: "optuna.Study") -> None:
    """Enqueue again the trials of dead processes of this machine; their runs resume from the last checkpoint."""
    from optuna.trial import TrialState

    for trial in study.get_trials(deepcopy=False, states=[TrialState.RUNNING]):
        host, pid = trial.user_attrs.get(_WORKER, ("", 0))
        if host != socket.gethostname() or is_alive(pid):
            continue
        try:
            study.tell(trial.number, state=TrialState.FAIL)
        except (ValueError, RuntimeError):
            continue  # another worker has enqueued it already
        enqueue(study, trial.params, start=is_start(trial))


def enqueue(study: "optuna.Study", params: Mapping[str, Any], *, start: bool) -> None:
    """Add a trial with ``params`` to the study; ``start`` marks the settings that the search starts from."""
    study.enqueue_trial(dict(params), user_attrs={_START: start})


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
