"""The comparison of an exported model with ``umix predict``, on made-up rows: the run's data need not be at hand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from umix.bench.runs.record import RunRecord
from umix.core.streams import stream
from umix.data.arrays import ArrayPreprocessing
from umix.data.images.image_folder import ImageReader
from umix.data.rows.reader import NewInputs, Reader
from umix.data.tables.preprocessing import TablePreprocessing
from umix.errors import UserError
from umix.exports.exported import Agreement
from umix.exports.preprocessing import NO_DATE, ColumnInput, Preprocessing, input_names
from umix.exports.table_inputs import TableInputs
from umix.exports.trained_model import TrainedModel
from umix.models.model import Model

if TYPE_CHECKING:
    import polars

#: The largest difference of a probability that an exported model may have.
TOLERANCE = 1e-5
_LEVEL = 1e-4  # of logits: two classes that are nearer are decided by rounding
_NUMBERS = 2**22  # in all images together
_MADE_UP = 24
_EXTREMES = (0.0, 1.0, -1.0, 40.0, 1e4, -1e7, 3e38, np.nan, np.inf)
_UNSEEN = "no value of training"
_EPOCH = datetime(1970, 1, 1)
_FIRST_DAY, _LAST_DAY = ((end - _EPOCH).days for end in (datetime(1, 1, 1), datetime(9999, 12, 31)))
_DATES = ("2000-02-29", "1900-02-28T23:59:59", "1969-12-31T23:59:59", "2024-12-31", "2100-03-01T01:00:00", "0001-01-01")


@final
@dataclass(frozen=True, eq=False)
class Expected:
    """What ``umix predict`` gives: labels as places among the classes, [n], and probabilities [n, classes]."""

    label: Tensor
    probabilities: Tensor
    offsets: Tensor  # of the logarithms of the probabilities, [classes]: with them the largest is the label

    @classmethod
    def of(cls, trained: TrainedModel, inputs: NewInputs) -> "Expected":
        """The predictions for ``inputs``."""
        table, classes = trained.predict(inputs).table, trained.record.classes
        probabilities = np.stack([table[f"p_{name}"].to_numpy() for name in classes], axis=1)
        label = places(table["label"].to_list(), classes)
        offsets = trained.calibration.log_offsets(trained.biases)
        return cls(label, torch.from_numpy(probabilities), torch.from_numpy(offsets))


def compare(expected: Expected, label: Tensor, probabilities: Tensor, *, by: str, output: str) -> Agreement:
    """How far the model's ``label`` [n] and ``probabilities`` [n, classes] are from ``expected``; raises where it is too far."""
    gap = (probabilities - expected.probabilities).abs().nan_to_num(torch.inf)
    difference = float(gap.max())
    if difference > TOLERANCE or _wrong(expected, label).any():
        rows = int(((gap.amax(dim=1) > TOLERANCE) | _wrong(expected, label)).sum())
        raise UserError(
            f"The exported model must give what umix predict gives to {TOLERANCE:.0e}, but it differs by {difference:.1e} in "
            f"{rows} of {len(gap)} rows; {output} was not written."
        )
    return Agreement(by, difference, len(gap))


def _wrong(expected: Expected, label: Tensor) -> Tensor:
    """Which labels are others than expected, and not because two classes are level, bool [n]."""
    scores = expected.probabilities.double().clamp(min=1e-45).log() + expected.offsets
    behind = scores.gather(1, expected.label[:, None]) - scores.gather(1, label[:, None])
    return (label != expected.label) & (behind[:, 0] > _LEVEL)


def places(labels: Sequence[str], classes: Sequence[str]) -> Tensor:
    """The place of every label among the ``classes``, int64 [n]."""
    place_of = {name: place for place, name in enumerate(classes)}
    return torch.tensor([place_of[label] for label in labels], dtype=torch.int64)


@final
@dataclass(frozen=True, eq=False)
class CheckRows:
    """Made-up rows as ``umix predict`` takes them, and the same as the exported model does.

    ``columns`` has the columns of a table, by input of the ONNX model.
    """

    inputs: NewInputs
    tensors: tuple[Tensor, ...]
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def check_rows(record: RunRecord, reader: Reader | None, net: Model, preprocessing: Preprocessing) -> CheckRows:
    """Random rows of the right shape; those of a table have every value of the categories, missing, unseen and extreme ones."""
    rng = stream(record.seed, "export", "check")
    if isinstance(preprocessing, TableInputs) and isinstance(reader, TablePreprocessing):
        return _table_rows(reader, preprocessing, rng)
    if isinstance(reader, ArrayPreprocessing):
        x = _array(reader, rng)
        return CheckRows(reader.inputs(x), (torch.from_numpy(x),))
    if isinstance(reader, ImageReader):
        n = max(2, min(_MADE_UP, _NUMBERS // (3 * reader.side**2)))
        pixels = torch.from_numpy(rng.integers(256, size=(n, 3, reader.side, reader.side), dtype=np.uint8))
        return CheckRows(NewInputs(pixels, reader.transform), (pixels.float(),))
    if record.input_dtype == "int64":
        n_tokens = next(part.num_embeddings for part in net.modules() if isinstance(part, nn.Embedding))
        ready = torch.from_numpy(rng.integers(n_tokens, size=(_MADE_UP, 4)))
    else:
        values = rng.normal(size=(_MADE_UP, *record.input_shape)).astype(np.float32)
        for place, size in enumerate(record.input_categories):
            if size:
                values[:, place] = rng.integers(size, size=_MADE_UP)
        ready = torch.from_numpy(values)
    return CheckRows(NewInputs(ready), (ready,))


def _array(reader: ArrayPreprocessing, rng: np.random.Generator) -> NDArray[np.float32]:
    """Rows that look like those of training, and some far away from them."""
    change = reader.change
    x = rng.normal(size=(_MADE_UP, *reader.input_shape)) * rng.choice(
        [1.0, 100.0], size=(_MADE_UP, *reader.input_shape)
    )
    if change.mean is not None and change.scale is not None:
        x = x / change.scale.numpy() + change.mean.numpy()
    return np.ascontiguousarray(np.moveaxis(x, 1, -1) if change.channels_last else x, dtype=np.float32)


def _table_rows(reader: TablePreprocessing, preprocessing: TableInputs, rng: np.random.Generator) -> CheckRows:
    frame = _made_up_table(reader, preprocessing, rng)
    columns = {column.name: _fed(column, frame[column.name])[:, None] for column in preprocessing.columns}
    tensors = []
    if preprocessing.numbers:
        joined = np.concatenate([columns[column.name] for column in preprocessing.numbers], axis=1)
        tensors.append(torch.from_numpy(joined.astype(np.float32)))
    if preprocessing.categories:
        codes = [[_code(column, text) for text in frame[column.name]] for column in preprocessing.categories]
        tensors.append(torch.tensor(codes, dtype=torch.int64).T.contiguous())
    if preprocessing.dates:
        tensors.append(torch.from_numpy(np.concatenate([columns[one.name] for one in preprocessing.dates], axis=1)))
    names = input_names(preprocessing)
    by_input = {names[name]: values for name, values in columns.items()}
    return CheckRows(reader.inputs(frame), tuple(tensors), by_input)


def _fed(column: ColumnInput, values: "polars.Series") -> NDArray[Any]:
    """The values of a column as the ONNX model takes them, [n]."""
    if column.kind == "number":
        return values.to_numpy()
    if column.kind == "date":
        seconds: NDArray[np.int64] = values.dt.epoch("s").fill_null(NO_DATE).to_numpy()
        return seconds
    return np.array(values.fill_null("").to_list(), dtype=object)


def _made_up_table(
    reader: TablePreprocessing, preprocessing: TableInputs, rng: np.random.Generator
) -> "polars.DataFrame":
    """Rows in which every column takes all of its values, in an order of its own, and usual rows at random."""
    import polars

    scales = {one.name: (one.mean[0], one.deviation[0]) for one in reader.input_columns if one.mean}
    columns: list[tuple[ColumnInput, list[Any], list[Any]]] = []
    for place, column in enumerate(preprocessing.columns):
        values: list[Any] = [*column.values, None, "", " ", "?", "NA", _UNSEEN]
        drawn: list[Any] = rng.choice(column.values, size=_MADE_UP).tolist() if column.values else []
        if column.kind == "number":
            values, drawn = [*_EXTREMES], rng.normal(*scales[column.name], size=_MADE_UP).tolist()
        elif column.kind == "date":
            first, spread = (round(number) for number in scales[column.name])
            values = [None, *map(datetime.fromisoformat, _DATES)]
            days = np.clip(first + spread * rng.normal(size=_MADE_UP), _FIRST_DAY, _LAST_DAY)
            drawn = [_EPOCH + timedelta(seconds=round(86_400 * float(day))) for day in days]
        columns.append((column, values[place % len(values) :] + values[: place % len(values)], drawn))
    n = max(len(values) for _, values, _ in columns)
    types: dict[str, Any] = {"number": polars.Float32, "category": polars.String, "date": polars.Datetime("us")}
    return polars.DataFrame(
        [
            polars.Series(column.name, [*islice(cycle(values), n), *drawn], dtype=types[column.kind])
            for column, values, drawn in columns
        ]
    )


def _code(column: ColumnInput, text: str | None) -> int:
    """The code of a value, as the user of the exported model looks it up."""
    return -1 if text is None or text not in column.values else column.values.index(text)
