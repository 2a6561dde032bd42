"""Rows that are in train and again in val or test are counted; rows that only look the same are not."""

import numpy as np
import polars

from umix.data.checks.copies import copies, row_keys

Y = np.arange(200) % 2
ROWS = {"train": np.arange(100), "val": np.arange(100, 150), "test": np.arange(150, 200)}


def keys(*, copied: int) -> np.ndarray:
    """Keys of 200 rows, of which the first ``copied`` of val repeat a training row of the same label."""
    made = np.arange(200, dtype=np.uint64)
    made[100 : 100 + copied] = made[:copied]
    return made


def test_copies_are_counted_with_their_share() -> None:
    (found,) = copies(keys(copied=10), Y, ROWS)
    assert str(found.sentence).startswith(
        "10 of 100 rows in val and test (10.0%) have the same inputs as a training row: "
    )
    assert found.message().endswith("in one split with split=.")


def test_the_labels_that_differ_are_counted() -> None:
    y = Y.copy()
    y[100] = 1 - y[100]
    assert "training row, 1 of them with another label:" in copies(keys(copied=10), y, ROWS)[0].message()


def test_rows_whose_labels_differ_as_often_as_by_chance_are_no_copies() -> None:
    y = Y.copy()
    y[100:105] = 1 - y[100:105]
    assert copies(keys(copied=10), y, ROWS) == []


def test_different_rows_and_less_than_one_percent_are_not_mentioned() -> None:
    assert copies(keys(copied=0), Y, ROWS) == []
    y, rows = np.arange(1200) % 2, {"train": np.arange(100), "val": np.arange(100, 900), "test": np.arange(900, 1200)}
    made = np.arange(1200, dtype=np.uint64)
    made[100:110] = made[:10]
    assert copies(made, y, rows) == []


def test_rows_have_the_same_key_if_all_their_values_are_the_same() -> None:
    made = row_keys(polars.DataFrame({"a": [1, 1, 1, None], "b": ["x", "x", "y", "x"]}))
    assert made[0] == made[1]
    assert len(set(made.tolist())) == 3
