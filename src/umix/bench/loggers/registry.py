"""The loggers by name, one line each."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

from umix.bench.runs.record import RunRecord
from umix.errors import Setting, UserError, unknown

#: Writes the result and the epochs of a finished run to the logger's program; logging a run twice changes nothing.
Logger = Callable[[RunRecord], None]

#: The module of each logger; its function ``logger(out, uri, select)`` returns one, or raises if its library is missing.
LOGGERS: Mapping[str, str] = MappingProxyType(
    {"mlflow": "umix.bench.loggers.mlflow", "tensorboard": "umix.bench.loggers.tensorboard"}
)


def loggers(
    names: Sequence[str], *, out: Path, mlflow_uri: str | None = None, select: str | None = None
) -> list[Logger]:
    """The loggers of these names; raises UserError if a library is missing, before anything is trained.

    The result that they write is that under the rule ``select``.
    """
    for name in names:
        if name not in LOGGERS:
            raise unknown("logger", name, LOGGERS)
    if mlflow_uri is not None and "mlflow" not in names:
        raise UserError(
            Setting("mlflow_uri"), " must go with ", Setting("log", "mlflow"), f", got {mlflow_uri!r} alone."
        )
    return [import_module(LOGGERS[name]).logger(out, mlflow_uri, select) for name in dict.fromkeys(names)]
