"""What nets take of a table: 0/1 columns, standardised numbers and marks of gaps, from the codes."""

import math
from pathlib import Path

import numpy as np
import polars
import torch

from umix import task_from_table
from umix.data.tables.one_hot import OneHot
from umix.data.tables.preprocessing import TablePreprocessing, one_hot

FRAME = polars.DataFrame(
    {"x": [1.0, 3.0, None, 5.0], "sex": list("fmfm"), "job": ["b", "a", "?", "b"], "k": [7] * 4, "n": [1, 2, 3, 4]}
)


def reader(frame: polars.DataFrame = FRAME) -> TablePreprocessing:
    codes = TablePreprocessing.fit(frame, np.arange(len(frame)), label="y", id=None)
    return TablePreprocessing(codes.input_columns, "y", None, one_hot=True, texts=codes.texts)


def test_categories_are_0_and_1_numbers_are_standardised_and_gaps_are_marked_at_the_end() -> None:
    x = reader().transform(FRAME)
    scale = math.sqrt(8 / 3)
    assert x[:, 0].tolist() == np.float32([-2 / scale, 0, 0, 2 / scale]).tolist()
    assert x[:, 1].tolist() == [0, 1, 0, 1]  # of two values only the second has a column
    assert x[:, 2:5].tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0]]  # a, b, missing
    assert x[:, 5].tolist() == np.float32((np.arange(4) - 1.5) / math.sqrt(1.25)).tolist()
    assert x[:, 6].tolist() == [0, 0, 1, 0]
    assert reader().input_shape == (7,)


def test_unseen_values_are_gaps_and_far_numbers_are_cut_at_ten_deviations() -> None:
    new = polars.DataFrame({"x": [1e30, math.inf], "sex": ["x", None], "job": ["new", ""], "n": [-1e9, None]})
    x = reader().transform(new)
    assert x[:, [0, 5, 6]].tolist() == [[10, -10, 0], [0, 0, 1]]
    assert x[:, 1].tolist() == [0, 0]  # training had no gap of sex
    assert x[:, 2:5].tolist() == [[0, 0, 1], [0, 0, 1]]


def test_the_numbers_of_dates_and_long_texts_are_standardised() -> None:
    frame = polars.DataFrame(
        {
            "day": polars.date_range(polars.date(2020, 1, 1), polars.date(2020, 12, 31), eager=True),
            "who": [f"person {i} of {i % 7}" for i in range(366)],
        }
    )
    x = reader(frame).transform(frame)
    assert np.allclose(x.mean(axis=0), 0, atol=1e-4)
    assert np.allclose(x.std(axis=0), 1, atol=1e-3)


def test_a_table_in_parts_is_the_table_as_a_whole() -> None:
    rng = np.random.default_rng(0)
    frame = polars.DataFrame({"x": rng.normal(size=9000), "t": rng.choice(["a", "b", "c"], 9000)})
    one = reader(frame)
    codes = torch.from_numpy(TablePreprocessing(one.input_columns, "y", None).transform(frame))
    layer = OneHot(one.input_columns)
    assert torch.equal(layer.whole(codes), layer(codes))


def test_a_task_of_codes_becomes_one_of_0_and_1_that_reads_new_rows_alike(tmp_path: Path) -> None:
    frame = polars.concat([FRAME.with_columns(y=polars.lit(label)) for label in "ab" * 8])
    task = task_from_table(frame, label="y")
    made = one_hot(task)
    assert (made.categories, made.splits["val"].x.isnan().any()) == ((), torch.tensor(False))
    assert one_hot(made) is made
    made.preprocessing.save(tmp_path)
    again = TablePreprocessing.load(tmp_path)
    assert torch.equal(again.inputs(frame[made.splits["val"].origin]).x, made.splits["val"].x)
    assert made.splits["train"].x.is_contiguous()
