"""Each finding about an input column is made for the column that it describes, and not for ordinary ones."""

import datetime

import numpy as np
import polars
import pytest

from umix.data.checks.column_findings import (
    constant_columns,
    identifiers,
    missing_values,
    number_texts,
    repeated_ids,
    split_columns,
)
from umix.data.checks.finding import Finding

N = 120


def column(name: str, values: list[object]) -> polars.DataFrame:
    return polars.DataFrame({name: (values * N)[:N]})


def fixes(found: list[Finding]) -> list[str]:
    return [finding.message().partition(". ")[2] for finding in found]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("split", ["train", "val", "test"]),
        ("where", ["Train", "TEST"]),
        ("split", [0, 1, 2]),
        ("dataSet", ["0", "1"]),
        ("partition", [0.0, 2.0, None]),
    ],
    ids=str,
)
def test_an_input_with_the_words_of_splits_is_proposed_as_the_split(name: str, values: list[object]) -> None:
    found = split_columns(column(name, values))
    assert [finding.subject for finding in found] == [name]
    assert fixes(found) == [f"Divide the rows by it with split={name} or leave it out with drop={name}."]


@pytest.mark.parametrize(
    ("name", "values"), [("fold", list(range(10))), ("is_train", [True, False]), ("in_test", [0, 1])], ids=str
)
def test_an_input_that_numbers_folds_or_marks_a_split_is_to_be_left_out(name: str, values: list[object]) -> None:
    assert fixes(split_columns(column(name, values))) == [f"Leave it out with drop={name}."]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("grade", [0, 1, 2]),
        ("settled", [0, 1]),
        ("is_new", [True, False]),
        ("split", ["pea", "banana"]),
        ("kind", ["test", "exam"]),
        ("split", ["train"]),
        ("set", list(range(100))),
    ],
    ids=str,
)
def test_an_ordinary_input_is_not_taken_for_a_split(name: str, values: list[object]) -> None:
    assert split_columns(column(name, values)) == []


def test_texts_of_several_words_are_no_id() -> None:
    assert identifiers(polars.DataFrame({"tweet": [f"this is text {i}" for i in range(N)]})) == []


def test_an_input_that_differs_in_every_row_is_proposed_as_the_id() -> None:
    found = identifiers(polars.DataFrame({"person": [f"p{i}" for i in range(N)], "number": range(N)}))
    assert found[0].sentence == (
        "The column 'person' is different in every row but is an input: it seems to only name the row."
    )
    assert fixes(found) == ["Make it the id with id=person.", "Leave it out with drop=number."]  # a table has one id


def test_a_column_named_id_with_many_values_is_an_identifier_even_if_they_repeat() -> None:
    found = identifiers(polars.DataFrame({"customerID": [float(i // 2) for i in range(300)]}))
    assert (
        found[0].sentence
        == "The column 'customerID' looks like an identifier (150 values in 300 rows) but is an input."
    )


def test_categories_measurements_moments_and_small_tables_have_no_identifier() -> None:
    day = datetime.datetime(2020, 1, 1)
    frame = polars.DataFrame(
        {
            "shop_id": [i % 20 for i in range(N)],
            "height": [1.5 + i / 1000 for i in range(N)],
            "seen": [day + datetime.timedelta(hours=i) for i in range(N)],
            "idle": [i // 2 for i in range(N)],
        }
    )
    assert identifiers(frame) == []
    assert identifiers(polars.DataFrame({"id": range(100)})) == []


def test_constant_columns_are_named_together() -> None:
    assert constant_columns([]) == []
    (found,) = constant_columns(["country", "nothing"])
    assert found.sentence == "Constant in training and left out: country, nothing."
    assert found.message().endswith("name them with drop=country,nothing.")


def test_a_column_is_missing_too_often_above_nine_tenths() -> None:
    frame = polars.DataFrame(
        {
            "rare": [1.0] * 9 + [None] * 60 + [float("nan")] * 31,
            "word": ["a"] * 9 + ["?"] * 60 + [" "] * 31,
            "often": [1] * 10 + [None] * 90,
        }
    )
    found = missing_values(frame)
    assert [finding.subject for finding in found] == ["rare", "word"]
    assert found[0].sentence == "The column 'rare' is missing in 91 of 100 rows (91.0%)."
    assert missing_values(frame, constant=["rare", "word"]) == []


@pytest.mark.parametrize("value", ["12 %", "12,5%", "$1,234", "1,234.50 €", "'4", "1'234", "1,234,567"])
def test_texts_that_look_like_numbers_are_said(value: str) -> None:
    column = polars.Series("x", [value, "3", "", "NA"] * 10)
    (finding,) = number_texts(column.to_frame())
    assert finding.message() == (
        f"The column 'x' is read as texts, but its values look like numbers ({value!r}). Write them as plain numbers, such as "
        "1234.5 or 1234,5, unless they are names."
    )


def test_a_few_texts_among_many_numbers_are_said() -> None:
    column = polars.Series("x", [*map(str, range(97)), "unknown", "unknown", "n.k."])
    (finding,) = number_texts(column.to_frame())
    assert finding.message() == (
        "The column 'x' is read as texts, because 3 of 100 values are no numbers ('n.k.', 'unknown'). Correct these, or leave "
        "them empty."
    )


@pytest.mark.parametrize(
    "values",
    [
        ["1", "2", "3+"] * 40,  # few values: a category
        ["1,5", "2,5"],
        ["2024-01-31", "2024-02-29"],
        ["31.12.2024", "1.1.2024"],
        ["12:30", "1:45"],
        ["1,2,3", "1,2"],
        ["E11.9", "5-1"],
        ["", "?"],
        [1, 2],
        [f"{i} main street" for i in range(100)],
    ],
    ids=str,
)
def test_other_columns_do_not_look_like_numbers(values: list[object]) -> None:
    assert number_texts(polars.DataFrame({"x": values})) == []


ROWS = {"train": np.arange(0, 180), "val": np.arange(180, 240), "test": np.arange(240, 300)}
ROUND = [row % 60 for row in range(300)]  # five rows each, in every split


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("patient", [f"p{one}" for one in ROUND]),
        ("patient_number", ROUND),
        ("Customer ID", [float(one) for one in ROUND]),
        ("visit_id", [row % 150 for row in range(300)]),
    ],
    ids=["owner", "number of an owner", "id of an owner", "any id"],
)
def test_an_identifier_with_rows_in_several_splits_is_to_divide_them(name: str, values: list[object]) -> None:
    (found,) = repeated_ids(polars.DataFrame({name: values, "age": [30] * 300}), ROWS)
    assert f"({len(set(values))} values in 300 rows)" in found.note
    shared = len(set(values[:180]) & set(values[180:]))
    n = sum(value in set(values[:180]) for value in values[180:])
    assert f"{n} of 120 rows in val and test" in found.note
    assert shared
    assert fixes([found]) == [
        f"If rows with one value belong together, keep them in one split: divide the rows with split_by={name} and in no other way."
    ]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("patient", [f"p{row // 5}" for row in range(300)]),  # no patient is in two splits
        ("patient_age", ROUND),
        ("shop_id", [row % 20 for row in range(300)]),
        ("user", [["new", "old"][row % 2] for row in range(300)]),
        ("id", list(range(300))),
        ("town", [f"p{one}" for one in ROUND]),
        ("patient", [None] * 300),
    ],
    ids=["kept together", "another fact", "few shops", "few values", "unique", "no identifier", "blank"],
)
def test_columns_that_name_nobody_twice_across_splits_are_not_found(name: str, values: list[object]) -> None:
    assert repeated_ids(polars.DataFrame({name: values}), ROWS) == []
