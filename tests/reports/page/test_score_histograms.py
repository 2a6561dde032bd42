"""Histograms of scores hold every judged test example once per group and class."""

from collections.abc import Callable

import numpy as np

from umix.bench.runs.record import RunRecord
from umix.reports.page.score_histograms import score_histograms
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
    rows, overall = score_histograms(run, predictions([0, 1, 1, 0], [0.5, 0.501, 0.999, 0.0], [0, 2, 2, 1], 4))
    assert [(row["group"], row["size"], row["label"], sum(row["counts"])) for row in rows] == [
        ("f", 3, "no", 1),
        ("f", 3, "yes", 2),
    ]
    assert rows[0]["counts"][50] == 1
    assert (rows[1]["counts"][50], rows[1]["counts"][99]) == (1, 1)
    assert [sum(row["counts"]) for row in overall] == [2, 2]


def test_more_than_two_classes_have_no_threshold(record: Make) -> None:
    run = record(0, [1, 1], classes=["a", "b", "c"])
    assert score_histograms(run, predictions([0], [0.5], [0], 2)) == ([], [])
