"""Loggers copy the result and the epochs of a finished run to TensorBoard or MLflow.

TensorBoard's event files are in the subfolder ``tensorboard`` of the run's folder. MLflow has a run with its settings, its result
and the metrics of every epoch, in a database beside the runs or on a server.
"""

import os
import re
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, final

from umix.bench.runs.epoch_table import EpochRow, read_epochs
from umix.bench.runs.record import RunRecord
from umix.errors import Setting, UserError, unknown

#: Writes the result and the epochs of a finished run to the logger's program; logging a run twice changes nothing.
Logger = Callable[[RunRecord], None]

DATABASE = "mlflow.db"
_FOLDER = "tensorboard"
_KEY = "umix.key"
_AT_ONCE = 1000  # most metrics that MLflow accepts in one call
_LONGEST = 250  # longest name that every version of MLflow accepts


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
    return [LOGGERS[name](out, mlflow_uri, select) for name in dict.fromkeys(names)]


@final
class Selected(NamedTuple):
    """What the rule selected: ``numbers`` (``summary/worst``, ``summary/groups/NAME/rate``) and ``words``, at this epoch."""

    epoch: int
    numbers: dict[str, float]
    words: dict[str, str]


def selected(record: RunRecord, select: str | None) -> Selected:
    """The summary of ``record`` under the rule ``select``, or under the run's own where that has no score."""
    rule = select if select is None or record.has(select) else None
    summary = record.summary(rule)
    values = dict(_flat_summary("summary", summary.model_dump(mode="json")))
    numbers = {name: float(value) for name, value in values.items() if isinstance(value, int | float)}
    return Selected(
        record.best_epoch(rule), numbers, {name: value for name, value in values.items() if isinstance(value, str)}
    )


def _flat_summary(name: str, value: Any) -> Iterator[tuple[str, float | str]]:
    """The numbers and words below ``value`` by their path; truth values, lists and what is not known are left out."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _flat_summary(f"{name}/{key}", below)
    elif isinstance(value, int | float | str) and not isinstance(value, bool):
        yield name, value


def _tensorboard(out: Path, uri: str | None = None, select: str | None = None) -> Logger:
    """A logger that writes event files into each run's folder, so that ``tensorboard --logdir OUT`` shows all runs.

    The result is that under the rule ``select``.
    """
    try:
        from tensorboard.summary import Writer
    except ImportError:
        raise UserError(
            Setting("log", "tensorboard"), " needs TensorBoard; install it with: pip install 'umix[tensorboard]'."
        ) from None

    def log(record: RunRecord) -> None:
        rows, folder = read_epochs(record.directory), record.directory / _FOLDER
        shutil.rmtree(folder, ignore_errors=True)  # event files are only appended to: every epoch would be there twice
        writer = Writer(str(folder))
        result = selected(record, select)
        for name, value in result.numbers.items():
            writer.add_scalar(name, value, step=result.epoch)
        for row in rows:
            writer.add_scalar(row.tag, row.value, step=row.epoch)
        writer.close()

    return log


def _mlflow(out: Path, uri: str | None = None, select: str | None = None) -> Logger:
    """A logger to the tracking server ``uri``, by default to the database ``mlflow.db`` in the folder ``out``.

    The result is that under the rule ``select``.
    """
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")  # MLflow's default waits for minutes
    try:
        from mlflow import MlflowClient
    except ImportError:
        raise UserError(
            Setting("log", "mlflow"), " needs MLflow; install it with: pip install 'umix[mlflow]'."
        ) from None
    address = uri or f"sqlite:///{(out / DATABASE).absolute()}"
    if uri is not None:
        with _user_errors(address):  # check the address before anything is trained
            MlflowClient(tracking_uri=address).search_experiments(max_results=1)

    def log(record: RunRecord) -> None:
        rows = read_epochs(record.directory)
        with _user_errors(address):
            _write(MlflowClient(tracking_uri=address), record, selected(record, select), rows)

    return log


@contextmanager
def _user_errors(address: str) -> Iterator[None]:
    """Inside the block, an error of MLflow about ``address`` becomes a UserError."""
    from mlflow.exceptions import MlflowException

    try:
        with _without_deprecations():
            yield
    except MlflowException as error:
        first = re.split(r"\.\s| with exception ", str(error).strip())[0].rstrip(".")
        raise UserError(
            Setting("mlflow_uri"),
            f" must be a tracking server or database that takes runs, but {address} answers: {first}.",
        ) from None


@contextmanager
def _without_deprecations() -> Iterator[None]:
    """Inside the block, deprecation warnings are hidden: they are about MLflow's own dependencies."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        yield


def _write(client: Any, record: RunRecord, result: Selected, rows: Sequence[EpochRow]) -> None:
    """Write the run to MLflow; a complete entry of the same run is kept, an incomplete one is replaced."""
    from mlflow.entities import Metric, Param

    name = f"umix {record.task}"
    experiment = client.get_experiment_by_name(name)
    experiment_id = experiment.experiment_id if experiment else client.create_experiment(name)
    for previous in client.search_runs([experiment_id], filter_string=f"tags.`{_KEY}` = '{record.key}'"):
        if previous.info.status == "FINISHED":
            return
        client.delete_run(previous.info.run_id)
    title = f"{record.method} seed {record.seed}"
    tags = {_KEY: record.key, **result.words}
    run = client.create_run(experiment_id, run_name=title, tags=tags).info.run_id
    settings = {"seed": record.seed, **_flat(record.plan)}
    client.log_batch(run, params=[Param(key, str(value)[:_LONGEST]) for key, value in settings.items()])
    names = _names([*result.numbers, *(row.tag for row in rows)])
    metrics = [Metric(names[name], value, 0, result.epoch) for name, value in result.numbers.items()]
    metrics += [Metric(names[row.tag], row.value, 0, row.epoch) for row in rows]
    for first in range(0, len(metrics), _AT_ONCE):
        client.log_batch(run, metrics=metrics[first : first + _AT_ONCE])
    client.set_terminated(run)


def _flat(plan: dict[str, Any]) -> dict[str, Any]:
    """The settings of every part of a plan, by ``part.field``."""
    return {f"{part}.{field}": value for part, fields in plan.items() for field, value in fields.items()}


def _names(tags: Iterable[str]) -> dict[str, str]:
    """A unique name for every tag that MLflow accepts."""
    names: dict[str, str] = {}
    for tag in dict.fromkeys(tags):
        plain = re.sub(r"[^\w .\-/]", "_", tag)
        plain = "/".join(part.strip(" .") or "_" for part in plain.split("/"))[: _LONGEST - 5]
        taken, number, name = set(names.values()), 1, plain
        while name in taken:
            number += 1
            name = f"{plain} {number}"
        names[tag] = name
    return names


#: Each takes the folder of the runs, the address of a server and the rule of the result, and raises if its library is missing.
LOGGERS: Mapping[str, Callable[[Path, str | None, str | None], Logger]] = MappingProxyType(
    {"mlflow": _mlflow, "tensorboard": _tensorboard}
)
