"""Histograms of the score of the second class on test, by group: what the threshold slider of the page is drawn from."""

from typing import Any

import numpy as np

from umix.bench.runs.record import RunRecord
from umix.core.words import group_name
from umix.reports.predictions import Predictions

_EDGES = [place / 100 for place in range(101)]


def score_histograms(
    record: RunRecord, predictions: Predictions, *, threshold: float
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A histogram for each group and true class, and for all test examples by true class; none unless there are two classes.

    The edges are the hundredths and ``threshold``, which decided the predictions: scores lie above or below it as they were
    predicted. Groups are the values of the group columns without the label: a threshold moves both kinds of errors within one of
    them. Groups with fewer test examples than the run's ``min_group`` are left out.
    """
    test = predictions.of("test")
    if len(record.classes) != 2 or test.probability is None or not test.n:
        return [], []
    edges = sorted({*_EDGES, threshold})
    chosen = edges.index(threshold)
    place = np.searchsorted(edges, test.probability[:, 1].astype(np.float64), side="right") - 1
    place = np.where(test.prediction == 1, place.clip(chosen, len(edges) - 2), place.clip(0, chosen - 1))
    rows: list[dict[str, Any]] = []
    for name, member in _attribute_groups(record, test).items():
        if member.sum() >= record.min_group:
            rows += _histograms(record, name, test.label[member], place[member], edges)
    return rows, _histograms(record, "", test.label, place, edges)


def _attribute_groups(record: RunRecord, test: Predictions) -> dict[str, np.ndarray]:
    """Who is in each combination of group values, whatever the label, bool [n]; without such parts the groups themselves."""
    if not record.group_parts:
        return {name: test.member[:, place] for place, name in enumerate(record.groups)}
    found: dict[str, np.ndarray] = {}
    for place, parts in enumerate(record.group_parts):
        name = group_name(parts[1:])
        found[name] = found.get(name, np.zeros(test.n, dtype=bool)) | test.member[:, place]
    return found


def _histograms(
    record: RunRecord, name: str, label: np.ndarray, place: np.ndarray, edges: list[float]
) -> list[dict[str, Any]]:
    return [
        {
            "group": name,
            "size": len(label),
            "label": class_name,
            "edges": edges,
            "counts": np.bincount(place[label == number], minlength=len(edges) - 1).tolist(),
        }
        for number, class_name in enumerate(record.classes)
    ]
