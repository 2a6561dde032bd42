"""The threshold view counts the test examples on either side of the threshold, each once per group and class."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from umix.bench.runs.execute import execute
from umix.bench.runs.record import RunRecord
from umix.bench.spec.run_spec import RunSpec
from umix.reports.page.section import sections
from umix.reports.page.threshold import OVERALL, ThresholdGroup, ThresholdView, threshold_view
from umix.reports.predictions import Predictions

Make = Callable[..., RunRecord]
EDGES = (0.0, 0.25, 0.5, 0.75, 1.0)
A = ThresholdGroup("a", 20, negatives=(6, 2, 1, 1), positives=(0, 1, 1, 8))
B = ThresholdGroup("b", 4, negatives=(0, 0, 4, 0), positives=(0, 0, 0, 0))


def predictions(label: list[int], score: list[float], group: list[int], n_groups: int) -> Predictions:
    p = np.array(score, dtype=np.float32)
    return Predictions(
        label=np.array(label),
        prediction=(p >= 0.5).astype(int),
        confidence=np.maximum(p, 1 - p),
        probability=np.column_stack([1 - p, p]),
        member=np.eye(n_groups, dtype=bool)[group],
        row=None,
        file=None,
        split=np.array(["test"] * len(label)),
    )


def test_rates_start_at_one_half_and_follow_the_threshold() -> None:
    view = ThresholdView(("no", "yes"), EDGES, (A, B))
    assert view.edges[view.start] == 0.5
    half = view.rates(A)
    assert (half.accuracy, half.true_positive, half.false_positive) == (17 / 20, 9 / 10, 2 / 10)
    assert view.rates(A, 0).true_positive == view.rates(A, 0).false_positive == 1.0
    assert view.rates(B, 3).accuracy == 1.0
    assert view.rates(B).true_positive is None
    assert view.told == "The default is 0.5."


@pytest.mark.parametrize(("chosen", "text"), [(0.00004437, "0.0000444"), (0.99995563, "0.9999556"), (0.4601, "0.460")])
def test_a_chosen_threshold_is_shown_with_the_digits_that_tell_it_from_others(chosen: float, text: str) -> None:
    view = ThresholdView(("no", "yes"), tuple(sorted([0.0, 0.5, chosen, 1.0])), (), chosen)
    assert view.texts[view.start] == text
    assert view.told == f"The threshold of this run is {text}."


def test_a_group_is_an_attribute_whatever_the_label_and_its_scores_lie_in_bins_of_a_hundredth(record: Make) -> None:
    run = record(
        0,
        [1, 1, 1, 1],
        groups=["no, f", "no, m", "yes, f", "yes, m"],
        group_columns=["y", "sex"],
        group_parts=[["no", "f"], ["no", "m"], ["yes", "f"], ["yes", "m"]],
        classes=["no", "yes"],
        train_sizes=[1, 1, 1, 1],
        min_group=2,
    )
    scored = predictions([0, 1, 1, 0], [0.5, 0.501, 0.999, 0.0], [0, 2, 2, 1], 4)
    view = threshold_view(run, scored, chosen=0.5)
    assert view is not None
    everything, women = view.groups  # the only man is too few
    assert (everything.name, everything.size, sum(everything.negatives), sum(everything.positives)) == (
        OVERALL,
        4,
        2,
        2,
    )
    assert (women.name, women.size) == ("f", 3)
    assert (women.negatives[50], women.positives[50], women.positives[99]) == (1, 1, 1)


def test_more_than_two_classes_have_no_threshold(record: Make) -> None:
    run = record(0, [1, 1], classes=["a", "b", "c"])
    assert threshold_view(run, predictions([0], [0.5], [0], 2), chosen=0.5) is None


def test_a_score_next_to_the_threshold_counts_as_it_was_predicted(record: Make) -> None:
    run, score = record(0, [1, 1], classes=["no", "yes"]), 0.46237
    scored = predictions([0, 1], [score, score], [0, 1], 2)
    for predicted in (0, 1):
        view = threshold_view(run, replace(scored, prediction=np.array([predicted] * 2)), chosen=score)
        assert view is not None
        everything = view.groups[0]
        assert sum(everything.negatives[view.start :]) == sum(everything.positives[view.start :]) == predicted


def test_the_panel_begins_with_the_chosen_threshold_and_the_rates_of_the_headline(tmp_path: Path) -> None:
    settings = {"epochs": 3, "hidden": [8], "sizes": [20, 120, 20, 120], "eval_size": 40}
    run = execute(RunSpec(task="four_moons", method="erm", settings=settings), out=tmp_path)
    (section,) = sections({"four_moons": {"erm": [run]}})
    view, summary = section.threshold, run.summary()
    assert view is not None
    assert view.edges[view.start] == summary.threshold
    raw = run.model_copy(update={"calibrations": {}}).summary().threshold
    assert raw == pytest.approx(0.94989, abs=1e-5) != summary.threshold
    overall, *groups = (view.rates(group).accuracy for group in view.groups)
    assert overall == summary.average
    assert groups == [rate.rate for rate in summary.groups.values()]
    assert run.choice("last") != run.choice()
    (section,) = sections({"four_moons": {"erm": [run]}}, select="last")
    assert section.threshold is None  # the run keeps no predictions of this choice
