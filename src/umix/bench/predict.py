"""Predictions of a finished run on the user's own data, for new data of the same kind."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from umix.bench.runs.load_net import load_net
from umix.bench.runs.record import RunRecord
from umix.core.decisions import decide as decided
from umix.core.selection import Decide
from umix.data.groups import Groups
from umix.data.loader import batches
from umix.data.memory_source import MemorySource
from umix.data.reader_registry import READERS
from umix.data.rows.reader import NewInputs, Reader
from umix.data.rows.table_file import check_output, write_table
from umix.data.task import Split
from umix.errors import Setting, UserError
from umix.nets.net import Net
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


def predict_new(
    record: RunRecord,
    new: Any,
    *,
    select: str | None = None,
    decide: Decide | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Prediction:
    """Predictions for ``new``, data of the kind that the run was trained on, by the net and biases that ``select`` chooses.

    For a run on a table, ``new`` is a path, a polars frame or a pandas frame. It needs no labels.
    """
    inputs = reader(record).inputs(new)
    choice = record.choice(select, decide)
    return predict_inputs(
        load_net(record, epoch=choice.epoch),
        inputs,
        record.classes,
        biases=record.biases(choice),
        workers=workers,
        progress=progress or Silent(),
    )


def predict_inputs(
    net: Net,
    inputs: NewInputs,
    class_names: Sequence[str],
    *,
    biases: NDArray[np.float64],
    workers: int | None = None,
    progress: Progress,
) -> Prediction:
    """The predictions of ``net`` for ``inputs``: ``biases`` decide the label, the probabilities are those of the net."""
    import polars

    logits = _logits(net, inputs, workers, progress)
    probability = logits.softmax(dim=1).numpy()
    classes = np.array(class_names, dtype=object)
    labels = classes[decided(logits, torch.from_numpy(biases)).numpy()]
    columns: dict[str, Any] = {"label": polars.Series(labels, dtype=polars.String)}
    columns |= {f"p_{name}": probability[:, c] for c, name in enumerate(class_names)}
    names = {(name if name not in columns else "id"): values for name, values in inputs.ids.items()}
    return Prediction(polars.DataFrame({**names, **columns}), inputs.notes)


def reader(record: RunRecord) -> Reader:
    """The reader of new data for this run; a run on a benchmark has none, which raises UserError."""
    task = record.plan["task"]
    kind = task["kind"] if task["name"] == MemorySource.name else task["name"]
    if kind not in READERS:
        raise UserError(
            f"Predictions must come from a run on data of one's own ({', '.join(READERS)}), got a run on {kind}, which "
            "nothing new can be read for."
        )
    return READERS[kind].load(record.directory)


def _logits(net: Net, inputs: NewInputs, workers: int | None, progress: Progress) -> torch.Tensor:
    """The logits of every class, [n, classes]."""
    n = len(inputs.x)
    no_groups = Groups(torch.zeros(n, 0, dtype=torch.bool), ())
    split = Split(inputs.x, torch.zeros(n, dtype=torch.int64), no_groups, transform=inputs.transform)
    size = max(_FEWEST, min(_MOST, _NUMBERS // max(1, split.example.numel())))
    parts = []
    progress.start("predict", total=n, done=0)
    try:
        with torch.inference_mode():
            for batch in batches(split, torch.arange(n), batch_size=size, workers=workers):
                parts.append(net(batch.x))
                progress.advance(len(parts[-1]))
    finally:
        progress.finish()
    return torch.cat(parts)


def write_predictions(
    record: RunRecord,
    new: Any,
    output: Path,
    *,
    select: str | None = None,
    decide: Decide | None = None,
    progress: Progress | None = None,
) -> Prediction:
    """Predict ``new`` and write the result to ``output``; the suffix of ``output`` decides the file format."""
    check_output(output)
    if isinstance(new, str | Path) and output.exists() and Path(new).exists() and output.samefile(new):
        raise UserError(Setting("output"), f" must be another file than the new data, got {str(output)!r} for both.")
    prediction = predict_new(record, new, select=select, decide=decide, progress=progress)
    write_table(prediction.table, output)
    return prediction
