"""The bins that are kept of a column: tenths of training, values of a category, and what is missing."""

from datetime import date, timedelta

import numpy as np
import polars
import pytest

from umix.data.tables import bins as module
from umix.data.tables.bins import Bins
from umix.data.tables.columns import TableColumn, column_of, numbers_of


def bins_of(column: polars.Series) -> tuple[TableColumn, Bins]:
    one = column_of(column)
    made = Bins.of(one, next(iter(numbers_of(one, column, {}))))
    assert made is not None
    return one, made


def test_a_number_has_tenths_of_the_training_rows() -> None:
    one, made = bins_of(polars.Series("x", np.random.default_rng(0).permutation(1000).astype(float)))
    assert made.counts == (100,) * 10 + (0,)
    values = np.array(
        [-5.0, made.edges[0], np.nextafter(np.float32(made.edges[0]), np.float32(np.inf)), 5000.0, np.nan]
    )
    assert made.count(one, values.astype(np.float32)) == (2, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1)
    assert made.names(one)[0] == "up to 99"
    assert made.names(one)[-2:] == ["above 899", "missing"]


def test_a_value_of_most_rows_is_a_bin_of_its_own() -> None:
    _, made = bins_of(polars.Series("gain", [0.0] * 92 + [float(k) for k in range(1, 9)]))
    assert made.edges == (0.0,)
    assert made.counts == (92, 8, 0)


def test_a_category_has_its_values_and_what_is_missing_or_new() -> None:
    one, made = bins_of(polars.Series("c", ["b", "a", None, "a"]))
    assert dict(zip(made.names(one), made.counts, strict=True)) == {"a": 2, "b": 1, "missing or new": 1}
    new = next(iter(numbers_of(one, polars.Series("c", ["b", "z", None]), {})))
    assert made.count(one, new) == (0, 1, 2)


def test_a_date_has_dates_as_ends() -> None:
    one, made = bins_of(polars.Series("day", [date(2020, 1, 1) + timedelta(days=k) for k in range(100)]))
    assert made.names(one)[0] == "up to 2020-01-10"


def test_a_long_text_has_no_bins() -> None:
    assert Bins.of(TableColumn("t", "text", 30), np.zeros(3, dtype=np.float32)) is None


def test_of_many_rows_some_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_ROWS", 50)
    _, made = bins_of(polars.Series("x", np.arange(1000.0)))
    assert sum(made.counts) == 50
    assert made.counts == (5,) * 10 + (0,)
