"""The tables of a run on new data, from numbers made by hand."""

from collections.abc import Callable

from umix.bench.evaluation.evaluated import ColumnDrift, ColumnImportance, Evaluated, Importance, NewRate
from umix.bench.runs.record import RunRecord
from umix.reports.tables.evaluation_tables import drift_table, evaluation_tables, importance_table, rates_table
from umix.reports.tables.text_table import TextTable


def rate(hits: int, size: int, **changes: object) -> NewRate:
    known = {"low": 0.1, "high": 0.9, "judged": True, "share": size / 100, "train_share": 0.4, "test_rate": 0.8}
    return NewRate(**{"hits": hits, "size": size, "rate": hits / size, "below_test": False, **known, **changes})


def moved(column: str, kind: str, share: float, *, large: bool = False) -> ColumnDrift:
    return ColumnDrift(
        column=column, kind=kind, moved=share, p_value=0.0, large=large, where="red", before=0.1, after=0.1 + share
    )


def evaluated(record: RunRecord, **changes: object) -> Evaluated:
    rates = {"a": rate(30, 60), "b": rate(10, 40, below_test=True), "class only": rate(40, 100)}
    values = {
        "run": "toy-erm",
        "data": "new",
        "rows": 100,
        "average": 0.4,
        "worst": 0.25,
        "worst_group": "b",
        "rates": rates,
        "test": record.summary(),
        "drift": [],
        "importance": None,
        "notes": ["Said of the data."],
    }
    return Evaluated(**values | changes)


def texts(table: TextTable) -> list[list[str]]:
    return [[entry.text for entry in row] for row in table.rows]


def test_new_rates_stand_beside_those_on_test(record: Callable[..., RunRecord]) -> None:
    run = record(0, [5, 9])
    table = rates_table(run, evaluated(run))
    assert texts(table) == [
        ["worst group: b", "25.0", "[10.0, 90.0]", "80.0", "40", "40.0", "40.0"],
        ["average", "40.0", "", "70.0", "100", "", ""],
        ["  a", "50.0", "[10.0, 90.0]", "80.0", "60", "60.0", "40.0"],
    ]
    assert table.notes == [
        "Worst group on test: a (50.0).",
        "Clearly worse than on test (95 % intervals do not overlap): b.",
        "Said of the data.",
    ]


def test_what_test_did_not_have_is_a_dash_and_small_groups_are_in_brackets(record: Callable[..., RunRecord]) -> None:
    run = record(0, [9, 5], min_group=30)
    new = rate(1, 2, test_rate=None, train_share=None, judged=False)
    table = rates_table(run, evaluated(run, rates={"b": rate(10, 40), "c": new, "class only": rate(40, 100)}))
    assert texts(table)[-1] == ["  (c)", "50.0", "[10.0, 90.0]", "–", "2", "2.0", "–"]
    assert "In brackets: fewer than 30 rows, shown but does not decide." in table.notes


def test_without_groups_classes_are_shown(record: Callable[..., RunRecord]) -> None:
    run = record(0, [9, 5])
    table = rates_table(run, evaluated(run, rates={"class only": rate(40, 100)}, worst=None, worst_group=None))
    assert [row[0] for row in texts(table)] == ["average", "  class only"]


def test_the_inputs_that_moved_most_are_shown_and_what_is_large_is_said(record: Callable[..., RunRecord]) -> None:
    inputs = [moved(f"x{k}", "input", 0.3 - k / 100, large=k == 0) for k in range(9)]
    table = drift_table(evaluated(record(0, [9, 5]), drift=[*inputs, moved("y", "label", 0.02)]))
    assert [row[0] for row in texts(table)] == ["x0", "x1", "x2", "x3", "label"]
    assert texts(table)[0] == ["x0", "30.0", "large", "red", "10.0", "40.0"]
    assert table.notes[0] == "and 5 inputs that moved less"
    assert "Large: 10 % or more, beyond chance (chi-squared test over 10 columns); 1 is." in table.notes[1]


def test_columns_that_matter_to_either_come_first(record: Callable[..., RunRecord]) -> None:
    columns = [
        ColumnImportance(column="x", all=0.2, all_std=0.01, worst=0.1, worst_std=0.02),
        ColumnImportance(column="sex", all=0.0, all_std=0.0, worst=-0.3, worst_std=0.01),
        ColumnImportance(column="z", all=0.001, all_std=0.0, worst=0.002, worst_std=0.0),
    ]
    found = Importance(data="new", rows=500, repeats=5, worst_group="b", worst_rows=40, columns=columns)
    table = importance_table(record(0, [9, 5]), found, most=2)
    assert table.header == ["input", "all rows", "b (n = 40)"]
    assert texts(table) == [["sex", "0.0 ± 0.0", "-30.0 ± 1.0"], ["x", "20.0 ± 1.0", "10.0 ± 2.0"]]
    assert table.notes[0] == "and 1 input of at most 0.2 points"
    assert "mean ± standard deviation of 5 shuffles of 500 rows" in table.notes[1]


def test_importance_is_shown_only_if_it_was_asked_for(record: Callable[..., RunRecord]) -> None:
    run = record(0, [9, 5])
    column = ColumnImportance(column="x", all=0.2, all_std=0.01)
    found = Importance(data="new", rows=500, repeats=5, columns=[column])
    assert len(evaluation_tables(run, evaluated(run))) == 2
    assert evaluation_tables(run, evaluated(run, importance=found))[2].header == ["input", "all rows"]
