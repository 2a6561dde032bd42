"""What runs learned about their data is read again; a file that was damaged is named in one sentence."""

from pathlib import Path

import numpy as np
import polars
import pytest

from umix.data.arrays import ArrayPreprocessing
from umix.data.images.image_folder import ImageReader
from umix.data.rows.reader import Reader
from umix.data.tables.preprocessing import TablePreprocessing
from umix.data.texts.text_reader import text_inputs
from umix.errors import UserError

FILES = ("columns.json", "arrays.safetensors", "images.json", "texts.safetensors")
FRAME = polars.DataFrame({"n": [1.0, 2.0, None, 4.0], "c": ["a", "b", "a", "b"]})


def saved(name: str, folder: Path) -> type[Reader]:
    """The class of a fitted reader that was saved into ``folder``."""
    rows = np.arange(4)
    if name == "columns.json":
        reader: Reader = TablePreprocessing.fit(FRAME, rows, label="y", id=None)
    elif name == "arrays.safetensors":
        reader = ArrayPreprocessing.fit(np.eye(4, 3, dtype=np.float32), rows, x="x", standardize=True)
    elif name == "images.json":
        reader = ImageReader(32)
    else:
        texts = ["a b", "b c", "c d", "d a"]
        reader = text_inputs(texts, {"train": rows}, column="t", id=None, tokenizer=None, length=9)[1]
    reader.save(folder)
    return type(reader)


@pytest.mark.parametrize("name", FILES)
def test_a_whole_file_is_read_and_tells_the_shape_of_inputs(tmp_path: Path, name: str) -> None:
    shape = saved(name, tmp_path).load(tmp_path).input_shape
    expected = {"columns.json": (2,), "arrays.safetensors": (3,), "images.json": (3, 32, 32)}
    assert shape == expected.get(name, shape)


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_one_sentence_that_names_it(tmp_path: Path, name: str) -> None:
    kind = saved(name, tmp_path)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-9])
    with pytest.raises(UserError, match=rf"{name} is damaged \(.*\); .*again\.$"):
        kind.load(tmp_path)
