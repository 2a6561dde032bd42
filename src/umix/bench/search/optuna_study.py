"""An Optuna study that several processes may work on, that outlives them, and that spends its budget once."""

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

if TYPE_CHECKING:
    import optuna

Pruning = Literal["median", "halving", "none"]

#: Parts of a run after which it is compared with the others: often enough to prune, rarely enough to cost nothing.
LOOKS = 10
_BEAT = 30  # seconds between two signs of life
_SILENCE = 120  # seconds after which a worker elsewhere counts as dead
_WORKER, _ERROR, _ABOUT, _START = "worker", "error", "umix", "start"


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Inside the block Optuna reports nothing on its own."""
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
    """Inside the block, the study ``name``, new or as it was left; one that was begun about something else is refused."""
    database = _storage(storage, folder)
    try:
        yield _study(name, database, about=about, prune=prune)
    finally:
        database.remove_session()
        database.engine.dispose()  # else its connections stay open until somebody collects garbage


def _study(
    name: str, database: "optuna.storages.RDBStorage", *, about: Mapping[str, str], prune: Pruning
) -> "optuna.Study":
    import optuna

    pruners: dict[str, Callable[[], optuna.pruners.BasePruner]] = {
        "median": lambda: optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=LOOKS // 4),
        "halving": optuna.pruners.SuccessiveHalvingPruner,
        "none": optuna.pruners.NopPruner,
    }
    study = optuna.create_study(
        storage=database,
        study_name=name,
        direction="maximize",
        load_if_exists=True,
        pruner=pruners[prune](),
    )
    begun = study.user_attrs.get(_ABOUT)
    if begun is None:
        study.set_user_attr(_ABOUT, dict(about))
    elif begun != about:
        other = next(key for key in about if begun.get(key) != about[key])
        raise UserError(
            f"The study {name!r} was begun with other {other} ({begun.get(other)}, now {about[other]}); choose another ",
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
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)  # signs of life
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


def draws_of(name: str, number: int) -> "optuna.samplers.BaseSampler":
    """The sampler (TPE) of trial ``number``; it has a stream of its own, so workers and resumed studies never repeat draws."""
    import optuna

    seed = int(stream(0, "search", name, number).integers(2**31))
    return optuna.samplers.TPESampler(seed=seed, constant_liar=True)


def spent(study: "optuna.Study", *, before: int | None = None) -> int:
    """How many trials of the budget are taken, by all workers: ended, failed by their settings, or under way."""
    from optuna.trial import TrialState

    taken = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.RUNNING)
    return sum(
        trial.state in taken or (trial.state == TrialState.FAIL and _ERROR in trial.user_attrs)
        for trial in study.get_trials(deepcopy=False)
        if before is None or trial.number < before
    )


def begin(trial: "optuna.Trial") -> None:
    """Write down which process works on ``trial``."""
    trial.set_user_attr(_WORKER, [socket.gethostname(), os.getpid()])


def blame(trial: "optuna.Trial", error: UserError) -> None:
    """Write down that ``trial`` failed by its own settings: again, it would fail again."""
    trial.set_user_attr(_ERROR, str(error))


def revive(study: "optuna.Study") -> None:
    """Queue again the trials that dead processes of this machine left under way; their runs go on where they were."""
    from optuna.trial import TrialState

    for trial in study.get_trials(deepcopy=False, states=[TrialState.RUNNING]):
        host, pid = trial.user_attrs.get(_WORKER, ("", 0))
        if host != socket.gethostname() or is_alive(pid):
            continue
        try:
            study.tell(trial.number, state=TrialState.FAIL)
        except (ValueError, RuntimeError):
            continue  # another worker saw it first
        queue(study, trial.params, start=is_start(trial))


def queue(study: "optuna.Study", params: Mapping[str, Any], *, start: bool) -> None:
    """Put settings in line; ``start`` marks those that the search starts from."""
    study.enqueue_trial(dict(params), user_attrs={_START: start})


def is_start(trial: "optuna.Trial | optuna.trial.FrozenTrial") -> bool:
    """Whether ``trial`` is the settings that the search started from."""
    return bool(trial.user_attrs.get(_START))


def importances(study: "optuna.Study") -> dict[str, float]:
    """How much of the objective's variation each setting explains; none where there is too little to tell."""
    import optuna

    ended = study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.COMPLETE])
    if len({trial.value for trial in ended}) < 4 or len(ended[0].params) < 2:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Optuna about its own estimators
        try:
            evaluator = optuna.importance.PedAnovaImportanceEvaluator()
            return dict(optuna.importance.get_param_importances(study, evaluator=evaluator))
        except (RuntimeError, ValueError):
            return {}


def failure_of(trial: Any) -> str | None:
    """Why ``trial`` failed by its settings; None if it did not."""
    error = trial.user_attrs.get(_ERROR)
    return None if error is None else str(error)
