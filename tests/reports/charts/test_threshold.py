"""The threshold view counts the examples on either side of the threshold."""

from typing import Any

import pytest

from umix.errors import UserError
from umix.reports.charts.threshold import OVERALL, threshold_view

EDGES = [0.0, 0.25, 0.5, 0.75, 1.0]


def row(group: str, label: str, counts: list[int], edges: list[float] = EDGES) -> dict[str, Any]:
    return {"group": group, "size": sum(counts), "label": label, "edges": edges, "counts": counts}


ROWS = [
    row("a", "no", [6, 2, 1, 1]),
    row("a", "yes", [0, 1, 1, 8]),
    row("b", "no", [0, 0, 4, 0]),
]


def test_rates_start_at_one_half_and_follow_the_threshold() -> None:
    view = threshold_view(ROWS, ["no", "yes"])
    everything, a, b = view.groups
    assert (everything.name, everything.size, a.size, b.size) == (OVERALL, 24, 20, 4)
    assert view.edges[view.start] == 0.5
    half = view.rates(a)
    assert (half.accuracy, half.true_positive, half.false_positive) == (17 / 20, 9 / 10, 2 / 10)
    assert view.rates(everything).accuracy == 17 / 24
    assert view.rates(a, 0).true_positive == view.rates(a, 0).false_positive == 1.0
    assert view.rates(b, 3).accuracy == 1.0


def test_a_rate_without_examples_is_not_known() -> None:
    view = threshold_view(ROWS, ["no", "yes"])
    assert view.rates(view.groups[2]).true_positive is None


def test_groups_that_overlap_have_their_own_overall_rows() -> None:
    everyone = [row("all", "no", [6, 2, 1, 1]), row("all", "yes", [0, 1, 1, 8])]
    view = threshold_view([*ROWS, row("c", "no", [6, 0, 0, 0])], ["no", "yes"], overall=everyone)
    assert view.groups[0].size == 20


@pytest.mark.parametrize(
    ("rows", "classes", "sentence"),
    [
        (ROWS, ["only"], "needs two classes, got 1"),
        ([], ["no", "yes"], "at least one group"),
        ([row("a", "maybe", [1, 1, 1, 1])], ["no", "yes"], "must be one of no, yes, got 'maybe'"),
        ([row("a", "no", [1], [0.0, 1.0])], ["no", "yes"], "must contain the threshold 0.5"),
        ([*ROWS, row("c", "no", [1], [0.0, 1.0])], ["no", "yes"], "must have the edges of the others"),
    ],
)
def test_wrong_histograms_are_refused_in_words(rows: list[dict[str, Any]], classes: list[str], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        threshold_view(rows, classes)


def test_the_slider_starts_at_the_threshold_that_the_run_has_chosen() -> None:
    edges = [0.0, 0.25, 0.46237, 0.5, 1.0]
    view = threshold_view([row("a", "no", [6, 2, 1, 1], edges)], ["no", "yes"], chosen=0.46237)
    assert view.edges[view.start] == 0.46237
    assert view.rates(view.groups[0]).accuracy == 0.8
    assert view.texts == ("0.00", "0.25", "0.462", "0.50", "1.00")
    assert view.told == "Chosen on validation: 0.462. Argmax would be 0.5."
    assert threshold_view(ROWS, ["no", "yes"]).told == "The default is 0.5."


@pytest.mark.parametrize(("chosen", "text"), [(0.00004437, "0.0000444"), (0.99995563, "0.9999556"), (0.4601, "0.460")])
def test_a_chosen_threshold_is_shown_with_the_digits_that_tell_it_from_others(chosen: float, text: str) -> None:
    edges = sorted([0.0, 0.5, chosen, 1.0])
    view = threshold_view([row("a", "no", [1, 1, 1], edges)], ["no", "yes"], chosen=chosen)
    assert view.texts[view.start] == text
