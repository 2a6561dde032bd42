"""Texts that all are numbers are read as numbers, with a decimal point or a decimal comma; what is not clear stays a text."""

import polars
import pytest

from umix.data.rows.column_kinds import as_kind, reads_as


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["89,8", "100,0", "7"], [89.8, 100.0, 7.0]),
        ([" 1,5", "2,5 ", "-0,25", "+3"], [1.5, 2.5, -0.25, 3.0]),
        (["1.234,5", "12.345.678,25", "987,1"], [1234.5, 12345678.25, 987.1]),
        (["1 234,5", "1\u00a0234,5", "1\u202f234"], [1234.5, 1234.5, 1234.0]),
        ([",5", "5,", "1,5e3", "2,5E-01"], [0.5, 5.0, 1500.0, 0.25]),
        (["1.234.567", "2,5"], [1234567.0, 2.5]),
        (["0,123", "1,234", "7"], [0.123, 1.234, 7.0]),  # 0,123 groups no thousands
    ],
    ids=str,
)
def test_numbers_with_a_decimal_comma_are_read_as_these(texts: list[str], numbers: list[float]) -> None:
    column = polars.Series(texts)
    assert reads_as(column) == "decimal_comma"
    assert as_kind(column, "decimal_comma").to_list() == numbers


def test_a_column_of_nothing_but_one_comma_and_three_digits_has_a_decimal_comma() -> None:
    column = polars.Series(["1,234", "45,600"])
    assert reads_as(column) == "decimal_comma"
    assert as_kind(column, "decimal_comma").to_list() == [1.234, 45.6]


@pytest.mark.parametrize(
    "texts",
    [
        ["999", "1,234", "45,600"],  # commas may well group thousands
        ["1,234,567", "2,5"],
        ["1.234", "89,8"],  # the point may be one of decimals
        ["12.5", "89,8"],
        ["1,234.5", "2,5"],
        ["89,8", "unknown"],
        ["12 %", "13,5 %"],
        ["'4", "'5"],
        ["1,2,3", "2,5"],
        [",", "2,5"],
        ["1.23,4", "2,5"],
    ],
    ids=str,
)
def test_what_is_not_clear_stays_a_text(texts: list[str]) -> None:
    assert reads_as(polars.Series(texts)) == "text"


def test_numbers_with_a_point_and_dates_are_what_they_were() -> None:
    assert reads_as(polars.Series(["1.234", " 5"])) == "number"
    assert reads_as(polars.Series(["2024-02-29"])) == "moment"


def test_columns_that_hold_numbers_already_stay_as_they_are() -> None:
    for column in (polars.Series([1.5, None]), polars.Series([1, 2])):
        assert as_kind(column, "decimal_comma").equals(column)
