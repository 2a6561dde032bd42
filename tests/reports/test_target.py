"""A target for every group: met, missed, by how much."""

from collections.abc import Callable

import pytest

from umix.bench.runs.record import RunRecord
from umix.errors import UserError
from umix.reports.target import check_target, known_target, target_table

Make = Callable[..., RunRecord]


def test_groups_below_the_target_are_named_with_what_they_lack_the_furthest_first(record: Make) -> None:
    run = record(0, [6, 5])
    check = check_target(run, run.summary(), 0.7)
    assert not check.met
    assert check.missed == pytest.approx({"b": 0.2, "a": 0.1})
    assert str(check) == "Target 70 % in every group: missed in 2 of 2: b by 20.0 points, a by 10.0 points."
    assert check.as_json() == {"target": 0.7, "met": False, "missed": pytest.approx({"b": 0.2, "a": 0.1})}


def test_a_target_that_is_reached_exactly_is_met_and_a_doubt_is_said(record: Make) -> None:
    run = record(0, [9, 7])
    check = check_target(run, run.summary(), 0.7)
    assert check.met
    assert str(check) == (
        "Target 70 % in every group: met; the lowest is b, 70.0 %, whose 95 % interval [39.7, 89.2] reaches below it."
    )
    assert str(check_target(run, run.summary(), 0.3)) == "Target 30 % in every group: met; the lowest is b, 70.0 %."


def test_groups_that_are_too_small_to_judge_take_no_part(record: Make) -> None:
    run = record(0, [9, 1], min_group=11)
    check = check_target(run, run.summary(), 0.7)
    assert "b" not in check.rates


def test_without_groups_the_classes_must_reach_it(record: Make) -> None:
    counts = {"hits": [[]], "sizes": [], "class_hits": [[7, 18]], "class_sizes": [10, 20]}
    run = record(0, [1], groups=[], train_sizes=[], classes=["no", "yes"], split_counts={"val": counts, "test": counts})
    assert str(check_target(run, run.summary(), 0.8)).startswith("Target 80 % in every class: missed in 1 of 2: ")


@pytest.mark.parametrize("target", [0.0, 70.0, float("nan")])
def test_a_target_is_a_rate(target: float) -> None:
    with pytest.raises(UserError, match=r"target= must be a rate in \(0, 1\], got .*; 0\.7 is 70 %"):
        known_target(target)


def test_the_table_counts_the_seeds_that_meet_it(runs: dict[str, dict[str, list[RunRecord]]]) -> None:
    table = target_table("toy", runs["toy"], 0.7)
    texts = [[entry.text for entry in row] for row in table.rows]
    assert texts == [
        ["erm", "60.0 ± 14.1", "1 of 2", "20.0", "b"],
        ["umix", "80.0 ± 0.0", "2 of 2", "–", "–"],
    ]
