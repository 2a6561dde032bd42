"""Groups are named with the columns of the table that they come from."""

from collections.abc import Callable

import pytest

from umix.bench.runs.record import RunRecord
from umix.reports.page.group_words import group_words

Make = Callable[..., RunRecord]
TABLE = {
    "groups": ["paid=0, f, old", "paid=1, m, old"],
    "group_columns": ["paid", "sex", "age"],
    "group_parts": [["paid=0", "f", "old"], ["paid=1", "m", "old"]],
    "group_values": [["paid=0", "paid=1"], ["f", "m"], ["old"]],
    "classes": ["0", "1"],
}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("paid=0, f, old", "sex = f, age = old, paid = 0"),
        ("paid=1, m (sex)", "sex = m, paid = 1"),
        ("class 1", "paid = 1"),
        ("unheard of", "unheard of"),
    ],
    ids=["group", "margin", "class", "other"],
)
def test_a_value_is_beside_its_column_and_the_label_comes_last(record: Make, name: str, words: str) -> None:
    assert group_words(record(0, [5, 5], **TABLE), name) == words


def test_the_groups_of_a_benchmark_keep_their_names(record: Make) -> None:
    parts = {"group_columns": ["label", "attribute"], "group_parts": [["a", "x"], ["b", "x"]]}
    assert group_words(record(0, [5, 5], **parts), "a") == "a"
    assert group_words(record(0, [5, 5]), "a") == "a"
