"""Columns that have a role: what they may hold, and how their values are named."""

import datetime

import polars
import pytest

from umix import task_from_table
from umix.data.rows.role_columns import check_id, encode_attribute, encode_labels, named
from umix.errors import UserError


def test_values_with_commas_make_groups_of_their_own() -> None:
    one, other = ["a, b", "a", "a, b", "a"] * 10, ["c", "b, c", "b, c", "c"] * 10
    frame = polars.DataFrame({"x": range(40), "one": one, "other": other, "y": ["no"] * 20 + ["yes"] * 20})
    task = task_from_table(frame, label="y", groups="one,other")
    assert task.groups[:4] == ('no, a, "b, c"', "no, a, c", 'no, "a, b", "b, c"', 'no, "a, b", c')


def test_labels_and_values_with_commas_make_groups_of_their_own() -> None:
    frame = polars.DataFrame({"x": range(40), "g": ["c", "b, c"] * 20, "y": ["a, b"] * 20 + ["a"] * 20})
    assert task_from_table(frame, label="y", groups="g").groups == ('a, "b, c"', "a, c", '"a, b", "b, c"', '"a, b", c')


def test_a_value_that_looks_like_a_named_number_has_another_name() -> None:
    column = polars.Series("g", ["0", "g=0", "missing", "g=missing"])
    assert len({named(column, value) for value in column}) == 4
    assert len(set(encode_attribute([column]).values)) == 4


def test_names_of_groups_are_on_one_line() -> None:
    frame = polars.DataFrame({"x": range(40), "g": ["a\nb", "\x1b[31m"] * 20, "y": ["no"] * 20 + ["yes\r"] * 20})
    assert all(name.isprintable() for name in task_from_table(frame, label="y", groups="g").groups)


ODD = {
    "list": [[1], [2]],
    "structure": [{"a": 1}, {"a": 2}],
    "bytes": [b"\xff", b"a"],
    "duration": [datetime.timedelta(1), datetime.timedelta(2)],
    "object": polars.Series([object(), object()]),
}


@pytest.mark.parametrize("kind", ODD)
def test_what_no_table_can_show_is_no_label_and_no_id(kind: str) -> None:
    column = polars.Series("y", ODD[kind])
    with pytest.raises(UserError, match=r"^The column 'y' must hold numbers or texts to be used so, got "):
        encode_labels(column)
    with pytest.raises(UserError, match=r"^The id column 'y' must hold numbers, texts or dates, got "):
        check_id(column)


@pytest.mark.parametrize("column", [[1, 2], [1.5, None], ["a", "b"], [True, None], [datetime.date(2024, 2, 29), None]])
def test_plain_values_are_ids(column: list[object]) -> None:
    check_id(polars.Series("id", column))


def test_an_id_that_predictions_could_not_carry_is_refused_before_training() -> None:
    frame = polars.DataFrame({"x": range(40), "id": [[i] for i in range(40)], "y": ["no", "yes"] * 20})
    with pytest.raises(UserError, match=r"^The id column 'id' must hold numbers, texts or dates, got List\(Int64\)"):
        task_from_table(frame, label="y", id="id")


def test_a_label_without_rows_is_refused() -> None:
    with pytest.raises(UserError, match=r"^The label 'kind' must be known in some rows, but there are no rows\.$"):
        encode_labels(polars.Series("kind", [], dtype=polars.String))
