"""The database of a search: a file, or a server that several machines share and that may go away."""

import contextlib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import final

import sqlalchemy
from optuna.exceptions import ExperimentalWarning, StorageInternalError
from optuna.storages import RDBStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial

from umix.bench.search.optuna_study import SILENCE
from umix.errors import MachineError, Setting, UserError
from umix.machine_faults import machine_error
from umix.store import locked

_BEAT = 20  # seconds between two heartbeats of a worker


@contextlib.contextmanager
def open_database(url: str | None, folder: Path) -> Iterator[RDBStorage]:
    """Inside the block, the database at ``url``, by default a file in ``folder``; if it goes away, MachineError is raised."""
    url = f"sqlite:///{(folder / 'study.db').absolute()}" if url is None else url
    try:
        with locked(folder):  # processes that create the tables of a database at once would disturb each other
            database = _connect(url)
        try:
            yield database
        finally:
            database.remove_session()
            database.engine.dispose()  # else its connections stay open until they are garbage-collected
    except Exception as error:
        chain = [error, *_behind(error)]
        if not any(isinstance(link, StorageInternalError) for link in chain):
            raise
        raise machine_error(error) or MachineError(
            f"The database {_without_password(url)} cannot be reached ({_reason(chain[-1])}); run the same command again when it "
            "is back: what is finished is kept."
        ) from error


def queue_again(study: Study, trial: FrozenTrial) -> None:
    """Queue a new trial with the settings of ``trial``, whose process has died or was interrupted.

    As Optuna's callback of that purpose does, which has another name since version 4.9.
    """
    study.add_trial(
        create_trial(
            state=TrialState.WAITING,
            params=trial.params,
            distributions=trial.distributions,
            user_attrs=trial.user_attrs,
            system_attrs=trial.system_attrs,
        )
    )


@final
class _Database(RDBStorage):
    """Optuna's storage with a heartbeat; trials whose heartbeat has stopped are queued again."""

    def record_heartbeat(self, trial_id: int) -> None:
        with contextlib.suppress(StorageInternalError):  # it would end Optuna's thread with a traceback
            RDBStorage.record_heartbeat(self, trial_id)

    def get_heartbeat_stale_trial_callback(self) -> Callable[[Study, FrozenTrial], None]:
        return queue_again

    get_failed_trial_callback = get_heartbeat_stale_trial_callback  # its name before Optuna 4.9


def _connect(url: str) -> RDBStorage:
    for short in ("postgresql://", "postgres://"):
        if url.startswith(short):
            url = url.replace(short, "postgresql+psycopg://", 1)
    options = {"connect_args": {"timeout": 120}} if url.startswith("sqlite") else {"pool_pre_ping": True}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)  # heartbeats are experimental
            return _Database(url, engine_kwargs=options, heartbeat_interval=_BEAT, grace_period=SILENCE)
    except ImportError:
        kind = url.partition(":")[0].partition("+")[0]
        fix = "pip install 'umix[postgresql]'" if kind == "postgresql" else "install it, or use sqlite or postgresql"
        raise UserError(
            Setting("storage"), f" must have a driver for {kind} databases, but it is not installed: {fix}."
        ) from None
    except (sqlalchemy.exc.ArgumentError, sqlalchemy.exc.DBAPIError) as error:
        raise UserError(
            Setting("storage"),
            f" must be the URL of a database that can be opened, such as sqlite:///study.db, but: {_reason(error)}.",
        ) from None


def _behind(error: BaseException) -> Iterator[BaseException]:
    """The errors that ``error`` was raised because of; the last is what the driver of the database says."""
    while (behind := error.__cause__ or error.__context__) is not None:
        yield (error := behind)


def _reason(error: BaseException) -> str:
    return str(getattr(error, "orig", None) or error).strip().splitlines()[0]


def _without_password(url: str) -> str:
    """``url`` without what may be secret.

    >>> _without_password("postgresql://ann:secret@host:5432/base?sslpassword=secret")
    'postgresql://ann:***@host:5432/base'
    """
    return str(sqlalchemy.make_url(url).set(query={}))
