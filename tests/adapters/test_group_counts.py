"""Counts of groups from one's own predictions, against counting by hand and against fairlearn's vocabulary of groups."""

import numpy as np
import pytest
import torch

from umix import Groups, UserError, group_counts


def example() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.integers(0, 2, 200), rng.integers(0, 2, 200), rng.choice(["a", "b", "c"], 200)


def test_rates_are_those_counted_by_hand() -> None:
    predicted, y, place = example()
    counts = group_counts(predicted, y, place)
    for label in (0, 1):
        for value in "abc":
            rows = (y == label) & (place == value)
            assert counts.rates[f"{label}, {value}"] == pytest.approx((predicted == y)[rows].mean())
    assert counts.worst == min(counts.rates.values())
    assert counts.average == pytest.approx((predicted == y).mean())


def test_counts_of_batches_add_to_those_of_all() -> None:
    predicted, y, place = example()
    parts = [
        group_counts(predicted[rows], y[rows], place[rows]) for rows in (slice(0, 3), slice(3, 90), slice(90, 200))
    ]
    total, whole = parts[0] + parts[1] + parts[2], group_counts(predicted, y, place)
    assert (total.rates, total.average, total.n) == (pytest.approx(whole.rates), whole.average, 200)
    assert sum(parts).rates == total.rates  # type: ignore[union-attr]


def test_logits_several_columns_groups_and_no_groups_are_understood() -> None:
    predicted, y, place = example()
    logits = torch.nn.functional.one_hot(torch.from_numpy(predicted), 2).float()
    assert group_counts(logits, torch.from_numpy(y), place).rates == group_counts(predicted, y, place).rates
    several = group_counts(predicted, y, {"place": place, "wet": y == 1})
    assert all("wet=" in name for name in several.names)
    given = Groups.from_ids(torch.from_numpy(y), ["no", "yes"])
    assert group_counts(predicted, y, given).rates.keys() == {"no", "yes"}
    assert group_counts(predicted, y).rates.keys() == {"0", "1"}


def test_examples_without_a_group_count_in_the_average_alone() -> None:
    counts = group_counts([1, 0], [1, 1], np.array(["a", None], dtype=object))
    assert (counts.rates, counts.average) == ({"1, a": 1.0}, 0.5)


def test_the_table_shows_the_lowest_first_and_markup_as_it_is() -> None:
    predicted, y, place = example()
    counts = group_counts(predicted, y, np.where(place == "a", "[red]a", place))
    lines = str(counts).splitlines()
    rates = [float(line.split(" %")[0].split()[-1]) for line in lines[1:-1]]
    assert rates == sorted(rates)
    assert "[red]a" in str(counts)
    assert lines[-1].startswith("all")


def test_metrics_leave_out_groups_without_examples() -> None:
    counts = group_counts([1], [1], Groups(torch.tensor([[True, False]]), ("a", "b")))
    assert counts.metrics() == {"average": 1.0, "worst": 1.0, "group/a": 1.0}


def test_no_examples_have_no_rate() -> None:
    assert np.isnan(group_counts([], [], []).average)


@pytest.mark.parametrize("wrong", [([1, 0, 1], [1, 0], None), ([1, 0], [1, 0], ["a"]), ([[[1]]], [1], None)])
def test_lengths_that_do_not_fit_are_refused(wrong: tuple[object, object, object]) -> None:
    with pytest.raises(UserError):
        group_counts(*wrong)  # type: ignore[arg-type]


def test_examples_without_a_label_are_refused() -> None:
    with pytest.raises(UserError, match="it is missing in 1 of 2"):
        group_counts(["a", "b"], ["a", float("nan")])


@pytest.mark.parametrize(
    ("predicted", "y", "said"),
    [
        (np.eye(2), ["no", "yes"], "texts and numbers"),
        (["no", "yes"], [0, 1], "texts and numbers"),
        ([0.3, 0.7], [0, 1], "got 0.3"),
        ([[0.3], [0.7]], [0, 1], r"got \[2, 1\]"),
    ],
)
def test_predictions_that_are_no_classes_of_the_labels_are_refused_and_not_counted_as_wrong(
    predicted: object, y: object, said: str
) -> None:
    with pytest.raises(UserError, match=said):
        group_counts(predicted, y)  # type: ignore[arg-type]


def test_logits_of_half_precision_are_counted() -> None:
    assert group_counts(torch.eye(2, dtype=torch.bfloat16), torch.tensor([0, 1])).average == 1.0
