"""TensorBoard: the result and scalars of every epoch, in the subfolder ``tensorboard`` of the run's folder."""

import shutil
from pathlib import Path

from umix.bench.loggers.registry import Logger
from umix.bench.loggers.selected import selected
from umix.bench.runs.epoch_table import read_epochs
from umix.bench.runs.record import RunRecord
from umix.errors import Setting, UserError

FOLDER = "tensorboard"


def logger(out: Path, uri: str | None = None, select: str | None = None) -> Logger:
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
        rows, folder = read_epochs(record.directory), record.directory / FOLDER
        shutil.rmtree(folder, ignore_errors=True)  # event files are only appended to: every epoch would be there twice
        writer = Writer(str(folder))
        result = selected(record, select)
        for name, value in result.numbers.items():
            writer.add_scalar(name, value, step=result.epoch)
        for row in rows:
            writer.add_scalar(row.tag, row.value, step=row.epoch)
        writer.close()

    return log
