"""The preprocessing of a run: as a part of its exported model, or in words why it cannot be one, and as plain values."""

from dataclasses import asdict
from typing import Any

from umix.bench.runs.record import RunRecord
from umix.data.arrays import ArrayPreprocessing
from umix.data.images.image_folder import ImageReader
from umix.data.images.transforms import MEAN, STD
from umix.data.rows.reader import Reader
from umix.data.tables.preprocessing import TablePreprocessing
from umix.data.texts.text_reader import TextReader
from umix.exports.preprocessing import SHORTEST, ArrayInputs, ImageInputs, Preprocessing, Ready, TensorInput
from umix.exports.table_inputs import TableInputs

_READY = "umix.load_result(RUN).inputs(new) does it"
_MOST = 4096  # numbers that are written out


def preprocessing_of(reader: Reader | None, record: RunRecord) -> Preprocessing:
    """What an exported model does before the net; what ``reader`` does beyond it is named by ``left_out``.

    A benchmark has no reader: its exported model takes inputs as the benchmark gives them.
    """
    if reader is None:
        return _ready(record, [f"what umix.load_task({record.plan['task']['name']!r}) does to make its inputs"])
    if isinstance(reader, ArrayPreprocessing):
        return ArrayInputs(reader)
    if isinstance(reader, ImageReader):
        return ImageInputs(reader)
    if isinstance(reader, TextReader) and record.input_dtype == "int64":
        how = f"turning the texts of {reader.column!r} into {SHORTEST} to {reader.longest} token ids, padded with {reader.padding}"
        return Ready(ready_input(record), [how], longest=reader.longest)
    if isinstance(reader, TextReader):
        return _ready(record, [f"turning the texts of {reader.column!r} into features of words ({_READY})"])
    if isinstance(reader, TablePreprocessing):
        beyond = [one.name for one in reader.input_columns if one.width and one.kind == "text"]
        return _ready(record, [_tables(beyond)]) if beyond else TableInputs(reader)
    return _ready(record, ["turning the data into numbers"])


def _tables(columns: list[str]) -> str:
    named = ", ".join(map(repr, columns))
    holds = "holds" if len(columns) == 1 else "hold"
    return f"turning the columns into numbers, because {named} {holds} long texts ({_READY})"


def ready_input(record: RunRecord) -> TensorInput:
    """The inputs of the net as they are."""
    if record.input_dtype == "int64":
        return TensorInput("ids", "int64", ("n", "length"), "token ids of the texts")
    return TensorInput("x", "float32", ("n", *record.input_shape), "the inputs of the net, ready")


def _ready(record: RunRecord, left_out: list[str]) -> Ready:
    return Ready(ready_input(record), left_out)


def recipe(reader: Reader | None) -> dict[str, Any]:
    """What was learned to turn raw data into inputs of the net, as far as it is a few values."""
    if isinstance(reader, ArrayPreprocessing):
        change = reader.change
        options: dict[str, Any] = {"array": reader.x, "channels_last": change.channels_last}
        for name, learned in (("mean", change.mean), ("scale", change.scale)):
            if learned is not None and learned.numel() <= _MOST:
                options[name] = learned.tolist()
        return options
    if isinstance(reader, ImageReader):
        return {"scaled_to": reader.side, "central_square": reader.size, "mean": MEAN, "deviation": STD}
    if isinstance(reader, TextReader):
        return {"text": reader.column, "padding": reader.padding}
    if isinstance(reader, TablePreprocessing):
        return {"one_hot": reader.one_hot, "columns": [asdict(one) for one in reader.input_columns if one.width]}
    return {}
