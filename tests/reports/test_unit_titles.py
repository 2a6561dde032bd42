"""What groups, margins and classes of a run are called."""

from collections.abc import Callable

import pytest

from umix.bench.runs.record import RunRecord
from umix.bench.runs.unit_titles import unit_titles
from umix.reports.comparison import compare
from umix.reports.tables.comparison_tables import groups_table, rates_table

Make = Callable[..., RunRecord]


def with_groups(record: Make, columns: list[str], values: list[list[str]], **changes: object) -> RunRecord:
    """A run whose groups are all combinations of two columns' values."""
    parts = [[label, value] for label in values[0] for value in values[1]]
    names = [", ".join(part) for part in parts]
    known = {"group_columns": columns, "group_parts": parts, "group_values": values}
    return record(0, [9] * len(parts), groups=names, train_sizes=[1] * len(parts), **known, **changes)


@pytest.mark.parametrize(
    ("columns", "values", "expected"),
    [
        (["income", "sex"], [["<=50K", ">50K"], ["Female", "Male"]], "<=50K, Female"),
        (["passed", "sex"], [["0", "1"], ["Female", "Male"]], "passed=0, Female"),
        (["outcome", "sex"], [["no", "yes"], ["F", "M"]], "outcome=no, sex=F"),
        (["income", "age"], [["low", "high"], ["18-40", "41-80"]], "low, age=18-40"),
        (["risk", "income"], [["low", "high"], ["low", "middle"]], "risk=low, income=low"),
    ],
    ids=["words", "numbers", "answers and letters", "ranges", "the same words twice"],
)
def test_a_value_that_says_nothing_alone_has_the_name_of_its_column(
    record: Make, columns: list[str], values: list[list[str]], expected: str
) -> None:
    assert next(iter(unit_titles(with_groups(record, columns, values)).values())) == expected


def test_a_class_that_says_nothing_alone_has_the_name_of_the_label(record: Make) -> None:
    plan = {
        "task": {"name": "table", "label": "passed", "groups": []},
        "method": {"name": "erm"},
        "net": {"name": "mlp"},
    }
    counts = {"hits": [[]], "sizes": [], "class_hits": [[7, 9]], "class_sizes": [10, 20]}
    alone = {"groups": [], "train_sizes": [], "split_counts": {"val": counts, "test": counts}}
    numbers = record(0, [1], classes=["0", "1"], plan=plan, **alone)
    assert unit_titles(numbers) == {"class 0": "passed=0", "class 1": "passed=1"}
    in_memory = {**plan, "task": {"name": "memory", "label": "table"}}
    assert list(unit_titles(record(0, [1], classes=["0", "1"], plan=in_memory, **alone)).values()) == ["0", "1"]
    words = record(0, [1], classes=["failed", "passed"], plan=plan, **alone)
    assert list(unit_titles(words).values()) == ["failed", "passed"]


def test_groups_without_columns_are_called_by_their_names(record: Make) -> None:
    assert unit_titles(record(0, [9, 5])) == {"a": "a", "b": "b", "class only": "class only"}


def test_comparison_tables_call_groups_as_the_table_of_a_run_does(record: Make) -> None:
    one = with_groups(record, ["outcome", "sex"], [["no", "yes"], ["F", "M"]])
    comparison = compare({"toy": {"erm": [one]}})
    titles = ["outcome=no, sex=F", "outcome=no, sex=M", "outcome=yes, sex=F", "outcome=yes, sex=M"]
    assert [row[0].text for row in groups_table(comparison, "toy").rows] == titles
    assert f"Worst group of erm: {titles[0]}." in rates_table(comparison, "toy").notes
