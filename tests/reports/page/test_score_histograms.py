"""Histograms of scores hold every judged test example once per group and class."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from umix.bench.runs.execute import execute
from umix.bench.runs.record import RunRecord
from umix.bench.spec.run_spec import RunSpec
from umix.reports.page.score_histograms import score_histograms
from umix.reports.page.section import sections
from umix.reports.predictions import Predictions

Make = Callable[..., RunRecord]


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
    rows, overall = score_histograms(run, scored, threshold=0.5)
    assert [(row["group"], row["size"], row["label"], sum(row["counts"])) for row in rows] == [
        ("f", 3, "no", 1),
        ("f", 3, "yes", 2),
    ]
    assert rows[0]["counts"][50] == 1
    assert (rows[1]["counts"][50], rows[1]["counts"][99]) == (1, 1)
    assert [sum(row["counts"]) for row in overall] == [2, 2]


def test_more_than_two_classes_have_no_threshold(record: Make) -> None:
    run = record(0, [1, 1], classes=["a", "b", "c"])
    assert score_histograms(run, predictions([0], [0.5], [0], 2), threshold=0.5) == ([], [])


def test_the_panel_begins_with_the_chosen_threshold_and_the_rates_of_the_headline(tmp_path: Path) -> None:
    settings = {"epochs": 3, "hidden": [8], "sizes": [20, 120, 20, 120], "eval_size": 40}
    run = execute(RunSpec(task="four_moons", method="erm", settings=settings), out=tmp_path)
    (section,) = sections({"four_moons": {"erm": [run]}})
    view, summary = section.threshold, run.summary()
    assert view is not None
    assert view.edges[view.start] == summary.threshold == pytest.approx(0.94989, abs=1e-5)
    overall, *groups = (view.rates(group).accuracy for group in view.groups)
    assert overall == summary.average
    assert groups == [rate.rate for rate in summary.groups.values()]
    assert run.choice("last") != run.choice()
    (section,) = sections({"four_moons": {"erm": [run]}}, select="last")
    assert section.threshold is None  # the run keeps no predictions of this choice


def test_a_score_next_to_the_threshold_counts_as_it_was_predicted(record: Make) -> None:
    run, score = record(0, [1, 1], classes=["no", "yes"]), 0.46237
    scored = predictions([0, 1], [score, score], [0, 1], 2)
    for predicted in (0, 1):
        asked = replace(scored, prediction=np.array([predicted] * 2))
        _, (no, yes) = score_histograms(run, asked, threshold=score)
        place = no["edges"].index(score)
        assert sum(no["counts"][place:]) == sum(yes["counts"][place:]) == predicted
