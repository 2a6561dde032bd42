"""A finished run on a table, applied to new rows."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
import torch

from umix.bench.record import RunRecord
from umix.bench.run import load_net
from umix.data.preprocessing import TablePreprocessing
from umix.data.table_file import as_frame
from umix.errors import UserError
from umix.files import write_whole

if TYPE_CHECKING:
    import polars

_ROWS = 8192


@final
@dataclass(frozen=True)
class Prediction:
    """One row per row of the table: the id where the run has one, ``label``, and ``p_CLASS`` for every class."""

    table: "polars.DataFrame"
    notes: tuple[str, ...]


def predict_table(record: RunRecord, table: Any, *, select: str | None = None) -> Prediction:
    """Predictions for ``table`` (a path, a polars or a pandas frame) by the net that the rule ``select`` chooses.

    Columns the model was trained with must be there; others are ignored. The label column is not needed.
    """
    import polars

    preprocessing = TablePreprocessing.load(record.directory)
    net = load_net(record, select=select)
    frame = as_frame(table)
    x = torch.from_numpy(preprocessing.transform(frame))
    with torch.inference_mode():
        probability = np.concatenate([net(part).softmax(dim=1).numpy() for part in x.split(_ROWS)])
    classes = np.array(record.classes, dtype=object)
    columns: dict[str, Any] = {"label": polars.Series(classes[probability.argmax(axis=1)], dtype=polars.String)}
    columns |= {f"p_{name}": probability[:, c] for c, name in enumerate(record.classes)}
    if preprocessing.id in frame.columns:
        name = preprocessing.id if preprocessing.id not in columns else "id"
        columns = {name: frame[preprocessing.id], **columns}
    used = {*preprocessing.columns, preprocessing.id}
    return Prediction(polars.DataFrame(columns), tuple(_notes(frame, used, preprocessing, record)))


def predict(record: RunRecord, table: Any, *, select: str | None = None) -> "polars.DataFrame":
    """The predictions alone."""
    return predict_table(record, table, select=select).table


def write_predictions(record: RunRecord, table: Any, output: Path, *, select: str | None = None) -> Prediction:
    """Predict ``table`` and write the result to ``output``, a .parquet or .csv file."""
    if output.suffix not in (".parquet", ".csv"):
        raise UserError(f"--output must end in .parquet or .csv, got {str(output)!r}.")
    prediction, content = predict_table(record, table, select=select), io.BytesIO()
    if output.suffix == ".csv":
        prediction.table.write_csv(content)
    else:
        prediction.table.write_parquet(content)
    write_whole(output, content.getvalue())
    return prediction


def _notes(
    frame: "polars.DataFrame", used: set[str | None], preprocessing: TablePreprocessing, record: RunRecord
) -> list[str]:
    """What was ignored or is missing: columns that training did not have, and the id."""
    known = {*used, preprocessing.label, record.plan["task"].get("split"), *record.plan["task"].get("drop", ())}
    extra = [name for name in frame.columns if name not in known]
    notes = [f"Ignored columns that the model was not trained with: {', '.join(extra)}."] if extra else []
    for name, count in preprocessing.unreadable(frame).items():
        notes.append(f"{count} values of {name!r} are not what they were in training and count as missing.")
    if preprocessing.id and preprocessing.id not in frame.columns:
        notes.append(f"The table has no id column {preprocessing.id!r}: predictions are in the order of its rows.")
    return notes
