"""Preprocessing as plain values, for a config that people read."""

from dataclasses import asdict
from typing import Any

from umix.data.arrays.preprocessing import ArrayPreprocessing
from umix.data.images.image_folder import ImageReader
from umix.data.images.transforms import MEAN, STD
from umix.data.rows.reader import Reader
from umix.data.tables.codes import TableCodes
from umix.data.tables.preprocessing import TablePreprocessing
from umix.data.texts.text_reader import TextReader

_MOST = 4096  # numbers that are written out


def recipe(reader: Reader) -> dict[str, Any]:
    """What was learned to turn raw data into inputs of the net, as far as it is a few values."""
    if isinstance(reader, ArrayPreprocessing):
        change = reader.change
        known: dict[str, Any] = {"array": reader.x, "channels_last": change.channels_last}
        for name, learned in (("mean", change.mean), ("scale", change.scale)):
            if learned is not None and learned.numel() <= _MOST:
                known[name] = learned.tolist()
        return known
    if isinstance(reader, ImageReader):
        return {"scaled_to": reader.side, "central_square": reader.size, "mean": MEAN, "deviation": STD}
    if isinstance(reader, TextReader):
        return {"text": reader.column, "padding": reader.padding}
    if isinstance(reader, TableCodes):
        return {"columns": [asdict(one) for one in reader.coded if one.width]}
    if isinstance(reader, TablePreprocessing):
        return {"columns": [one.as_json() for one in reader.input_columns if one.width]}
    return {}
