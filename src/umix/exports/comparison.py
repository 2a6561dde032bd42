"""The comparison of an exported model with ``umix predict``, on rows of the run's data and made-up ones."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from umix.bench.runs.record import RunRecord
from umix.core.streams import stream
from umix.core.words import counted
from umix.data.arrays import ArrayPreprocessing, read_array
from umix.data.images.folder_listing import find_images
from umix.data.images.image_folder import ImageReader
from umix.data.rows.column_kinds import cast
from umix.data.rows.reader import NewInputs, Reader, stacked
from umix.data.rows.table_blocks import table_blocks
from umix.data.tables.preprocessing import TablePreprocessing
from umix.data.texts.text_reader import TextReader
from umix.errors import UserError
from umix.exports.exported import Agreement
from umix.exports.preprocessing import ColumnInput, Preprocessing, input_names
from umix.exports.table_inputs import TableInputs
from umix.exports.trained_model import TrainedModel
from umix.nets.net import Net

if TYPE_CHECKING:
    import polars

#: The largest difference of a probability that an exported model may have.
TOLERANCE = 1e-5
_LEVEL = 1e-4  # of logits: two classes that are nearer are decided by rounding
_ROWS = 256  # of the run's data; fewer where an example has many numbers
_NUMBERS = 2**22  # in all rows together
_MADE_UP = 24
_EXTREMES = (0.0, 1.0, -1.0, 40.0, 1e4, -1e7, 3e38, np.nan, np.inf)
_UNSEEN = "no value of training"
Rows = TypeVar("Rows")


@final
@dataclass(frozen=True, eq=False)
class Expected:
    """What ``umix predict`` gives: labels as places among the classes, [n], and probabilities [n, classes]."""

    label: Tensor
    probabilities: Tensor
    biases: Tensor

    @classmethod
    def of(cls, trained: TrainedModel, inputs: NewInputs) -> "Expected":
        """The predictions for ``inputs``."""
        table, classes = trained.predict(inputs).table, trained.record.classes
        probabilities = np.stack([table[f"p_{name}"].to_numpy() for name in classes], axis=1)
        label = places(table["label"].to_list(), classes)
        return cls(label, torch.from_numpy(probabilities), torch.from_numpy(trained.biases))


def compare(expected: Expected, label: Tensor, probabilities: Tensor, *, by: str, words: str, output: str) -> Agreement:
    """How far the model's ``label`` [n] and ``probabilities`` [n, classes] are from ``expected``; raises where it is too far."""
    gap = (probabilities - expected.probabilities).abs().nan_to_num(torch.inf)
    difference = float(gap.max())
    if difference > TOLERANCE or _wrong(expected, label).any():
        rows = int(((gap.amax(dim=1) > TOLERANCE) | _wrong(expected, label)).sum())
        raise UserError(
            f"The exported model must give what umix predict gives to {TOLERANCE:.0e}, but it differs by {difference:.1e} in "
            f"{rows} of {len(gap)} rows; {output} was not written."
        )
    return Agreement(by, difference, len(gap), words)


def _wrong(expected: Expected, label: Tensor) -> Tensor:
    """Which labels are others than expected, and not because two classes are level, bool [n]."""
    scores = expected.probabilities.double().clamp(min=1e-45).log() + expected.biases
    behind = scores.gather(1, expected.label[:, None]) - scores.gather(1, label[:, None])
    return (label != expected.label) & (behind[:, 0] > _LEVEL)


def places(labels: Sequence[str], classes: Sequence[str]) -> Tensor:
    """The place of every label among the ``classes``, int64 [n]."""
    known = {name: place for place, name in enumerate(classes)}
    return torch.tensor([known[label] for label in labels], dtype=torch.int64)


@final
@dataclass(frozen=True, eq=False)
class CheckRows:
    """Rows as ``umix predict`` takes them, and the same as the exported model does; ``words`` says what they are.

    ``columns`` has the columns of a table, by input of the ONNX model.
    """

    inputs: NewInputs
    tensors: tuple[Tensor, ...]
    words: str
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def check_rows(record: RunRecord, reader: Reader, net: Net, preprocessing: Preprocessing) -> CheckRows:
    """Rows of the run's data if they are still where they were, else made-up ones; of a table both. There are at least two."""
    if isinstance(preprocessing, TableInputs) and isinstance(reader, TablePreprocessing):
        return _table_rows(record, reader, preprocessing)
    found = at_hand(record, lambda data: _first(reader, data, _most(record)))
    if found is None or len(found[1]) < 2:
        inputs, tensor = _made_up(record, reader, net)
        return CheckRows(inputs, (tensor,), f"{len(tensor)} made-up rows")
    inputs, tensor = found
    return CheckRows(inputs, (tensor,), f"{counted(len(tensor), 'row')} of {Path(record.task).name}")


def at_hand(record: RunRecord, read: Callable[[Path], Rows]) -> Rows | None:
    """What ``read`` makes of the run's data; None if they are gone, or are others by now."""
    data = Path(record.task)
    try:
        return read(data) if data.exists() else None
    except UserError:
        return None


def _most(record: RunRecord) -> int:
    return max(2, min(_ROWS, _NUMBERS // max(1, int(np.prod(record.input_shape)))))


def _first(reader: Reader, data: Path, most: int) -> tuple[NewInputs, Tensor]:
    """The first rows of ``data``, as predict takes them and as the exported model does."""
    rows = first_rows(reader, data, most)
    if isinstance(reader, ArrayPreprocessing):
        return _array(reader, rows)
    if isinstance(reader, ImageReader):
        images = reader.images(data, rows)
        return NewInputs(images, reader.transform), stacked(images).float()
    inputs = reader.inputs(rows)
    return inputs, stacked(inputs.x)


def first_rows(reader: Reader, data: Path, most: int) -> Any:
    """The first rows of ``data``: of an array, of a table (of CSV no more is read than their block), or names of images."""
    if isinstance(reader, ArrayPreprocessing):
        return np.asarray(read_array(data, reader.x)[:most])
    if isinstance(reader, ImageReader):
        names = list(find_images(data).names)[:most]
        if not names:
            raise UserError(f"{data} must hold images, but there are none below it.")
        return names
    frames = reader.frames(data) if isinstance(reader, TablePreprocessing | TextReader) else table_blocks(data)
    return next(frames).head(most)


def _made_up(record: RunRecord, reader: Reader, net: Net) -> tuple[NewInputs, Tensor]:
    """The same of random rows of the right shape."""
    rng = stream(record.seed, "export", "check")
    if isinstance(reader, ArrayPreprocessing):
        shape = (_MADE_UP, *reader.shape)
        return _array(reader, rng.normal(size=shape) * rng.choice([1.0, 100.0], size=shape))
    if isinstance(reader, ImageReader):
        shape = (_most(record) // 8 + 2, 3, reader.side, reader.side)
        pixels = torch.from_numpy(rng.integers(256, size=shape, dtype=np.uint8))
        return NewInputs(pixels, reader.transform), pixels.float()
    if record.input_dtype == "int64":
        known = next(part.num_embeddings for part in net.modules() if isinstance(part, nn.Embedding))
        x = torch.from_numpy(rng.integers(known, size=(_MADE_UP, 4)))
    else:
        x = torch.from_numpy(rng.normal(size=(_MADE_UP, *record.input_shape)).astype(np.float32))
    return NewInputs(x), x


def _array(reader: ArrayPreprocessing, values: NDArray[Any]) -> tuple[NewInputs, Tensor]:
    return reader.inputs(values), torch.from_numpy(values.astype(np.float32))


def _table_rows(record: RunRecord, reader: TablePreprocessing, preprocessing: TableInputs) -> CheckRows:
    """The first rows of the table, and rows that have every value of the categories, missing, unseen and extreme ones."""
    import polars

    made, words = _made_up_table(reader, preprocessing, stream(record.seed, "export", "check")), []
    needed = [column.name for column in preprocessing.columns]
    found = at_hand(record, lambda data: _readable(reader, first_rows(reader, data, _ROWS)))
    frame = made
    if found is not None:
        words.append(f"{counted(len(found), 'row')} of {Path(record.task).name}")
        frame = polars.concat([_as_given(found.select(needed), preprocessing, reader.kinds), made])
    words.append(f"{len(made)} made-up ones" if words else f"{len(made)} made-up rows")
    columns = {
        column.name: frame[column.name].to_numpy()[:, None]
        if column.kind == "number"
        else np.array(frame[column.name].fill_null("").to_list(), dtype=object)[:, None]
        for column in preprocessing.columns
    }
    tensors = []
    if preprocessing.numbers:
        joined = np.concatenate([columns[column.name] for column in preprocessing.numbers], axis=1)
        tensors.append(torch.from_numpy(joined.astype(np.float32)))
    if preprocessing.categories:
        codes = [[_code(column, text) for text in frame[column.name]] for column in preprocessing.categories]
        tensors.append(torch.tensor(codes, dtype=torch.int64).T.contiguous())
    names = input_names(preprocessing)
    return CheckRows(
        reader.inputs(frame),
        tuple(tensors),
        " and ".join(words),
        {names[name]: found for name, found in columns.items()},
    )


def _readable(reader: TablePreprocessing, frame: "polars.DataFrame") -> "polars.DataFrame":
    """``frame``, if it has the columns of training."""
    reader.check_columns(frame)
    return frame


def _as_given(frame: "polars.DataFrame", preprocessing: TableInputs, kinds: Mapping[str, str]) -> "polars.DataFrame":
    """The columns, which are of these ``kinds``, as the exported model takes them: float32 and texts."""
    import polars

    names = [column.name for column in preprocessing.numbers]
    numbers = cast(frame, {name: "number" if kinds[name] == "text" else kinds[name] for name in names})
    return polars.DataFrame(
        [
            numbers[column.name].cast(polars.Float32, strict=False).fill_null(math.nan)
            if column.kind == "number"
            else frame[column.name].cast(polars.String, strict=False)
            for column in preprocessing.columns
        ]
    )


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
        columns.append((column, values[place % len(values) :] + values[: place % len(values)], drawn))
    n = max(len(values) for _, values, _ in columns)
    types = {"number": polars.Float32, "category": polars.String}
    return polars.DataFrame(
        [
            polars.Series(column.name, [*islice(cycle(values), n), *drawn], dtype=types[column.kind])
            for column, values, drawn in columns
        ]
    )


def _code(column: ColumnInput, text: str | None) -> int:
    """The code of a value, as the user of the exported model looks it up."""
    return -1 if text is None or text not in column.values else column.values.index(text)
