"""Rules and their regret."""

from collections.abc import Callable

import pytest

from umix.bench.runs.record import RunRecord
from umix.core.selection import ORACLE
from umix.reports.regret import outcomes, regret_tables

Make = Callable[..., RunRecord]


@pytest.fixture
def runs(record: Make) -> dict[str, dict[str, list[RunRecord]]]:
    """Validation likes the first epoch by its worst group and the second by its average; on test the third is the best."""
    run = record(0, [[6, 6], [10, 5], [7, 8]])
    val = {"hits": [[9, 9], [10, 8], [1, 1]], "sizes": [10, 10], "class_hits": [[18], [19], [2]], "class_sizes": [20]}
    counts = {"val": val, "test": run.split_counts["test"]}
    first = record(0, [[1, 1]], split_counts=counts)
    second = record(1, [[1, 1]], split_counts={**counts, "val": {**val, "hits": [[9, 9], [8, 8], [8, 10]]}})
    return {"toy": {"erm": [first, second]}}


def test_regret_is_what_the_worst_group_loses_against_the_oracle_seed_by_seed(runs: dict) -> None:
    found = {outcome.rule: outcome for outcome in outcomes(runs)}
    assert (found["worst"].worst.mean, found["worst"].regret.mean) == pytest.approx((0.6, 0.1))
    assert (found["average"].worst.mean, found["average"].regret.mean) == pytest.approx((0.5, 0.2))
    assert (found["last"].worst.mean, found["last"].regret.mean) == pytest.approx((0.7, 0.0))
    assert (found[ORACLE].worst.mean, found[ORACLE].regret.mean) == pytest.approx((0.7, 0.0))
    assert found["worst"].seeds == (0, 1)


def test_rules_without_a_score_are_left_out(runs: dict) -> None:
    rules = [outcome.rule for outcome in outcomes(runs)]
    assert rules == [
        "worst",
        "balanced",
        "average",
        "worst_class",
        "last",
        "oracle_test",
    ]  # one class, no losses, no first stage


def test_the_grid_marks_the_oracle_and_never_prints_it_as_the_best(runs: dict) -> None:
    (table,) = regret_tables(outcomes(runs))
    assert list(table.header) == ["rule", "seeds", "worst group", "average", "regret", "knows"]
    rows = [[entry.text for entry in row] for row in table.rows]
    assert rows[0] == ["worst", "2", "60.0 ± 0.0", "60.0 ± 0.0", "10.0 ± 0.0", "groups"]
    assert rows[-1] == ["oracle_test", "2", "70.0 ± 0.0", "75.0 ± 0.0", "0.0 ± 0.0", "test (no rule)"]
    assert [row[0].text for row in table.rows if row[2].best] == ["last"]


def test_without_groups_the_worst_class_is_what_counts(record: Make) -> None:
    counts = {"hits": [[], []], "sizes": [], "class_hits": [[9, 4], [6, 6]], "class_sizes": [10, 10]}
    nothing = {"groups": [], "train_sizes": [], "classes": ["x", "y"]}
    run = record(0, [1], split_counts={"val": counts, "test": counts}, **nothing)
    found = {outcome.rule: outcome for outcome in outcomes({"toy": {"erm": [run]}})}
    assert "worst" not in found
    assert found["average"].regret.mean == pytest.approx(0.2)
    assert regret_tables(list(found.values()), without_groups=["toy"])[0].header[2] == "worst class"
