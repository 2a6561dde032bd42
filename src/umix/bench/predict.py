"""Predictions of a finished run on the user's own data, for new data of the same kind."""

import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, final

import torch

from umix.bench.runs.load_net import load_net
from umix.bench.runs.record import RunRecord
from umix.core.selection import Choice, Threshold
from umix.core.thresholds import calibrated_probabilities, predicted_classes
from umix.data.groups import Groups
from umix.data.loader import batches
from umix.data.memory_source import MemorySource
from umix.data.registry import READERS
from umix.data.rows.reader import NewInputs, NoteSum, Reader
from umix.data.rows.table_file import check_output, write_table
from umix.data.task import Split
from umix.errors import Setting, UserError
from umix.models.model import Model
from umix.training.progress import Progress, Silent

if TYPE_CHECKING:
    import polars

_NUMBERS = 2**24  # most input numbers in a batch
_MOST, _FEWEST = 8192, 16  # most and fewest examples in a batch


@final
@dataclass(frozen=True)
class Prediction:
    """One row per example: the columns that name it, ``label``, and ``p_CLASS`` for every class."""

    table: "polars.DataFrame"
    notes: tuple[str, ...]


@final
class PredictedBlocks:
    """The predictions of ``net`` for new data, a table for each block of it.

    Labels and probabilities are those that ``record`` has for ``choice``. ``notes`` are complete after the last block.
    """

    def __init__(
        self,
        net: Model,
        blocks: Iterable[NewInputs],
        record: RunRecord,
        choice: Choice,
        *,
        progress: Progress | None = None,
    ) -> None:
        self._net, self._blocks, self._class_names = net, blocks, record.classes
        self._biases, self._calibration = torch.from_numpy(record.biases(choice)), record.calibration(choice)
        self._progress = progress or Silent()
        self._notes = NoteSum()

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be known of the blocks so far."""
        return self._notes.sentences

    def __iter__(self) -> "Iterator[polars.DataFrame]":
        done = 0
        for inputs in self._blocks:
            self._notes.add(inputs.notes)
            n = len(inputs.x)
            self._progress.start("predict", total=done + n, done=done)
            try:
                table = self._table(inputs)
            finally:
                self._progress.finish()
            yield table
            done += n

    def whole(self) -> Prediction:
        """The predictions of all blocks in one table."""
        import polars

        tables = list(self)
        table = polars.concat(tables, how="vertical_relaxed")
        return Prediction(table, self.notes)

    def _table(self, inputs: NewInputs) -> "polars.DataFrame":
        import polars

        logits = torch.cat(list(self._logits(inputs)))
        labels = polars.Series(list(self._class_names), dtype=polars.String)
        columns = {"label": labels.gather(predicted_classes(logits, self._biases).numpy())}
        probability = calibrated_probabilities(logits, self._calibration).numpy()
        columns |= {f"p_{name}": polars.Series(probability[:, c]) for c, name in enumerate(self._class_names)}
        names = {(name if name not in columns else "id"): values for name, values in inputs.ids.items()}
        return polars.DataFrame({**names, **columns})

    def _logits(self, inputs: NewInputs) -> Iterator[torch.Tensor]:
        """The logits of every class, [n, classes], batch by batch."""
        with torch.inference_mode():
            for x in _batches(inputs):
                yield self._net(x)
                self._progress.advance(len(x))


def _batches(inputs: NewInputs) -> Iterator[torch.Tensor]:
    """The inputs of the net in batches."""
    n = len(inputs.x)
    no_groups = Groups(torch.zeros(n, 0, dtype=torch.bool), ())
    split = Split(inputs.x, torch.zeros(n, dtype=torch.int64), no_groups, transform=inputs.transform)
    size = max(_FEWEST, min(_MOST, _NUMBERS // max(1, split.example.numel())))
    if isinstance(inputs.x, torch.Tensor) and inputs.transform is None:
        yield from inputs.x.split(size)  # views, which cost nothing
        return
    for batch in batches(split, torch.arange(n), batch_size=size):
        yield batch.x


def predicted(
    record: RunRecord,
    new: Any,
    *,
    select: str | None = None,
    threshold: Threshold | None = None,
    progress: Progress | None = None,
    trust_code: bool = False,
) -> PredictedBlocks:
    """Predictions for ``new``, data of the kind that the run was trained on, by the net and biases that ``select`` chooses.

    For a run on a table, ``new`` is a path, a polars frame, a pandas frame, or an open file with CSV. It needs no labels.
    With ``trust_code`` the record may name code as its net.
    """
    blocks = reader(record).blocks(new)
    choice = record.choice(select, threshold)
    net = load_net(record, epoch=choice.epoch, trust_code=trust_code)
    return PredictedBlocks(net, blocks, record, choice, progress=progress)


def reader(record: RunRecord) -> Reader:
    """The reader of new data for this run; UserError where there is none: of a benchmark."""
    task = record.plan["task"]
    kind = task["kind"] if task["name"] == MemorySource.name else task["name"]
    if kind not in READERS:
        raise UserError(
            f"Predictions must come from a run on data of one's own ({', '.join(READERS)}), got a run on {kind}, which "
            "nothing new can be read for."
        )
    return READERS[kind].load(record.directory)


def write_predictions(
    record: RunRecord,
    new: Any,
    output: Path,
    *,
    select: str | None = None,
    threshold: Threshold | None = None,
    progress: Progress | None = None,
    trust_code: bool = False,
) -> Prediction:
    """Predict ``new`` and write the result to ``output``; the suffix of ``output`` decides the file format."""
    check_output(output)
    if isinstance(new, str | Path) and output.exists() and os.path.exists(new) and output.samefile(new):
        raise UserError(Setting("output"), f" must be another file than the new data, got {str(output)!r} for both.")
    prediction = predicted(
        record, new, select=select, threshold=threshold, progress=progress, trust_code=trust_code
    ).whole()
    write_table(prediction.table, output)
    return prediction


def stream_predictions(
    record: RunRecord,
    new: Any,
    output: IO[bytes],
    *,
    select: str | None = None,
    threshold: Threshold | None = None,
    progress: Progress | None = None,
    trust_code: bool = False,
) -> tuple[str, ...]:
    """Write the predictions for ``new`` as CSV to ``output``, a block after the other, and return what is to be known of it."""
    blocks = predicted(record, new, select=select, threshold=threshold, progress=progress, trust_code=trust_code)
    for number, table in enumerate(blocks):
        content = io.BytesIO()
        table.write_csv(content, include_header=number == 0)
        output.write(content.getbuffer())
        output.flush()
    return blocks.notes
