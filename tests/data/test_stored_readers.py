"""What runs learned about their data is checked when it is read: a file that was damaged is named in one sentence."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
import torch

from umix.data.arrays.preprocessing import ArrayPreprocessing
from umix.data.images.image_folder import ImageReader
from umix.data.rows.reader import Reader
from umix.data.tables.codes import TableCodes
from umix.data.tables.preprocessing import TablePreprocessing
from umix.data.texts.text_reader import text_inputs
from umix.errors import UserError
from umix.files import read_tensors, write_tensors

FRAME = polars.DataFrame({"n": [1.0, 2.0, None, 4.0], "c": ["a", "b", "a", "b"]})


def saved(name: str, folder: Path) -> type[Reader]:
    """The class of a fitted reader that was saved into ``folder``."""
    rows = np.arange(4)
    if name == "columns.json":
        reader: Reader = TablePreprocessing.fit(FRAME, label="y", id=None)[0]
    elif name == "codes.json":
        reader = TableCodes.fit(FRAME.clone(), rows, label="y", id=None)
    elif name == "arrays.safetensors":
        reader = ArrayPreprocessing.fit(np.eye(4, 3, dtype=np.float32), rows, x="x", standardize=True)
    elif name == "images.json":
        reader = ImageReader(32)
    else:
        texts = ["a b", "b c", "c d", "d a"]
        reader = text_inputs(texts, {"train": rows}, column="t", id=None, tokenizer=None, length=9)[1]
    reader.save(folder)
    return type(reader)


def in_json(change: Callable[[Any], object]) -> Callable[[Path], object]:
    def apply(path: Path) -> None:
        content = json.loads(path.read_text())
        made = change(content)
        path.write_text(json.dumps(content if made is None else made))

    return apply


def in_known(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    def apply(path: Path) -> None:
        kind = f"{path.stem} preprocessing"
        tensors, metadata = read_tensors(path, kind=kind)
        known = json.loads(metadata["known"])
        change(known)
        write_tensors(path, tensors, {**metadata, "known": json.dumps(known)})

    return apply


def in_tensors(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    def apply(path: Path) -> None:
        tensors, metadata = read_tensors(path, kind=f"{path.stem} preprocessing")
        change(tensors)
        write_tensors(path, tensors, metadata)

    return apply


DAMAGES: list[tuple[str, Callable[[Path], object]]] = [
    ("columns.json", in_json(lambda content: [])),
    ("columns.json", in_json(lambda content: content.pop("label"))),
    ("columns.json", in_json(lambda content: content.update(id=[]))),
    ("columns.json", in_json(lambda content: content.update(others=[3]))),
    ("columns.json", in_json(lambda content: content.update(columns=[[]]))),
    ("columns.json", in_json(lambda content: content["columns"].append(content["columns"][0]))),
    ("columns.json", in_json(lambda content: content["columns"][0].update(kind="nope"))),
    ("columns.json", in_json(lambda content: content["columns"][0].update(mean=[]))),
    ("columns.json", in_json(lambda content: content["columns"][0].update(deviation=[0.0]))),
    ("columns.json", in_json(lambda content: content["columns"][0].update(mean=[float("nan")]))),
    ("columns.json", in_json(lambda content: content["columns"][0].update(mean=["x"]))),
    ("columns.json", in_json(lambda content: content["columns"][1].update(values=["a", "a"]))),
    ("columns.json", in_json(lambda content: content["columns"][1].update(values=[]))),
    ("columns.json", lambda path: path.write_text("[" * 5000)),
    ("codes.json", in_json(lambda content: content["columns"][0].update(width=7))),
    ("codes.json", in_json(lambda content: content["columns"][0].update(kind="moment", parts=["__class__"]))),
    ("codes.json", in_json(lambda content: content["columns"][1].update(values=["a", "a"]))),
    ("codes.json", in_json(lambda content: content["columns"][0].update(values=["a"]))),
    ("arrays.safetensors", in_known(lambda known: known.update(shape=3))),
    ("arrays.safetensors", in_known(lambda known: known.update(shape=[-1]))),
    ("arrays.safetensors", in_known(lambda known: known.update(shape=[4]))),
    ("arrays.safetensors", in_known(lambda known: known.update(channels_last=True))),
    ("arrays.safetensors", in_known(lambda known: known.pop("x"))),
    ("arrays.safetensors", in_tensors(lambda tensors: tensors.pop("mean"))),
    ("arrays.safetensors", in_tensors(lambda tensors: tensors["scale"].fill_(torch.nan))),
    ("images.json", in_json(lambda content: content.update(size="32"))),
    ("images.json", in_json(lambda content: content.update(size=-1))),
    ("images.json", in_json(lambda content: content.update(size=10**9))),
    ("images.json", lambda path: path.write_bytes(b"")),
    ("texts.safetensors", in_tensors(lambda tensors: tensors.pop("idf"))),
    ("texts.safetensors", in_tensors(lambda tensors: tensors["idf"].fill_(torch.nan))),
    ("texts.safetensors", in_known(lambda known: known.update(terms=["a", "a"]))),
    ("texts.safetensors", in_known(lambda known: known.update(terms={}))),
    ("texts.safetensors", in_known(lambda known: known.update(scale=float("inf")))),
    ("texts.safetensors", in_known(lambda known: known.update(tokenizer="{}", pad=0, length=0))),
]


@pytest.mark.parametrize("name", sorted({name for name, _ in DAMAGES}))
def test_a_whole_file_is_read_and_tells_the_shape_of_inputs(tmp_path: Path, name: str) -> None:
    shape = saved(name, tmp_path).load(tmp_path).input_shape
    expected = {"columns.json": (3,), "codes.json": (2,), "arrays.safetensors": (3,), "images.json": (3, 32, 32)}
    assert shape == expected.get(name, shape)


@pytest.mark.parametrize(("name", "change"), DAMAGES, ids=range(len(DAMAGES)))
def test_a_file_that_does_not_fit_is_one_sentence_that_names_it(
    tmp_path: Path, name: str, change: Callable[[Path], object]
) -> None:
    kind = saved(name, tmp_path)
    change(tmp_path / name)
    with pytest.raises(UserError) as caught:
        kind.load(tmp_path)
    message = str(caught.value)
    assert f"{name} must " in message
    assert message.endswith(("again.", "move it."))


def test_skops_files_with_foreign_types_are_refused(tmp_path: Path) -> None:
    import skops.io

    texts = [f"text number {number} of many" for number in range(240)]
    frame = polars.DataFrame({"t": texts, "n": list(range(240))})
    TableCodes.fit(frame, np.arange(240), label="y", id=None).save(tmp_path)
    path = tmp_path / "codes-texts.skops"
    path.write_bytes(skops.io.dumps({"format": "umix table texts 1", "encoders": {"t": Path}}))
    with pytest.raises(
        UserError, match=r"codes-texts\.skops must hold nothing but a table's preprocessing, but it holds"
    ):
        TableCodes.load(tmp_path)
    path.write_bytes(skops.io.dumps({"format": "umix table texts 1", "encoders": {"t": [1]}}))
    with pytest.raises(
        UserError, match=r"\(codes-texts\.skops\) must apply to the table, but it raised AttributeError"
    ):
        TableCodes.load(tmp_path).transform(frame)
    path.write_bytes(skops.io.dumps({"format": "umix table texts 1", "encoders": {}}))
    with pytest.raises(
        UserError, match=r"codes-texts\.skops must be a whole preprocessing file, but .* \(KeyError: 't'\)"
    ):
        TableCodes.load(tmp_path)
