"""Confusion by group counts every test example once in its group, and curves are of groups whatever the label."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import confusion_matrix, log_loss

from umix.bench.runs.record import RunRecord
from umix.reports.page.group_errors import group_errors
from umix.reports.page.threshold import OVERALL
from umix.reports.predictions import Predictions

Make = Callable[..., RunRecord]


def predictions(classes: int, n: int = 300) -> Predictions:
    """Half validation, half test; groups 0 and 1 are values of an attribute, with the label in their name."""
    rng = np.random.default_rng(classes)
    label = rng.integers(0, classes, n)
    p = rng.dirichlet(np.ones(classes), n) + 0.5 * np.eye(classes)[label]
    p /= p.sum(axis=1, keepdims=True)
    attribute = (np.arange(n) % 3 == 0).astype(int)
    return Predictions(
        label=label,
        prediction=p.argmax(axis=1),
        confidence=p.max(axis=1),
        probability=p,
        member=np.eye(2 * classes, dtype=bool)[2 * label + attribute],
        row=None,
        file=None,
        split=np.repeat(["val", "test"], n // 2),
    )


@pytest.fixture
def run(record: Make) -> Callable[..., RunRecord]:
    def make(classes: int, **changes: object) -> RunRecord:
        parts = [[f"c{label}", sex] for label in range(classes) for sex in ("f", "m")]
        names = {"groups": [", ".join(part) for part in parts], "group_parts": parts, "group_columns": ["y", "sex"]}
        values = {"classes": [f"c{k}" for k in range(classes)], "train_sizes": [1] * len(parts), **names, **changes}
        return record(0, [1] * len(parts), **values)

    return make


@pytest.mark.parametrize("classes", [2, 3])
def test_metrics_of_every_group_are_before_and_after_calibration(run: Callable[..., RunRecord], classes: int) -> None:
    held_out, threshold = predictions(classes), 0.5 if classes == 2 else None
    plain = group_errors(run(classes), held_out, threshold=threshold)
    assert plain is not None
    assert plain.metrics is not None
    assert not any("before" in name for name in plain.metrics.header)
    halved = run(classes, calibrations={0: [0.5, *[0.0] * classes]})
    found = group_errors(halved, held_out, threshold=threshold)
    assert found is not None
    assert found.metrics is not None
    header = found.metrics.header
    assert header[2:4] == ["balanced accuracy", "f1:c1" if classes == 2 else "macro f1"]
    assert [name for name in header if "before" in name] == [
        f"{name}, before" for name in ("log loss", "brier", "calibration error")
    ]
    test = held_out.of("test")
    assert test.probability is not None
    women = test.member[:, ::2].any(axis=1)
    row = next(row for row in found.metrics.rows if row[0].text == "f")
    logits = np.log(test.probability[women]) / 0.5  # half of these made the probabilities
    expected = log_loss(test.label[women], softmax(logits, axis=1), labels=range(classes))
    assert row[header.index("log loss, before")].text == f"{expected:.3f}"
    after = log_loss(test.label[women], test.probability[women], labels=range(classes))
    assert row[header.index("log loss")].text.startswith(f"{after:.3f} [")


@pytest.mark.parametrize("classes", [2, 3])
def test_confusion_is_that_of_scikit_learn_in_every_group(run: Callable[..., RunRecord], classes: int) -> None:
    held_out = predictions(classes)
    found = group_errors(run(classes), held_out, threshold=0.5 if classes == 2 else None)
    assert found is not None
    test = held_out.of("test")
    women = test.member[:, ::2].any(axis=1)
    for name, inside in ((OVERALL, np.ones(test.n, dtype=bool)), ("f", women), ("m", ~women)):
        expected = confusion_matrix(test.label[inside], test.prediction[inside], labels=range(classes))
        rows = [row for row in found.confusion if row.group == name]
        assert [list(row.counts) for row in rows] == expected.tolist()
        assert [row.label for row in rows] == [f"c{k}" for k in range(classes)]
    assert sum(row.size for row in found.confusion if row.group == OVERALL) == test.n


def test_two_classes_have_a_roc_curve_and_more_only_a_calibration_curve(run: Callable[..., RunRecord]) -> None:
    two = group_errors(run(2), predictions(2), threshold=0.5)
    three = group_errors(run(3), predictions(3), threshold=None)
    assert two is not None
    assert three is not None
    assert [figure.name for figure in two.figures] == ["roc", "calibration"]
    assert [figure.name for figure in three.figures] == ["calibration"]
    assert "probability of the predicted class" in three.figures[0].description
    assert {row["group"] for row in two.figures[0].rows} == {"f", "m"}


def test_groups_with_few_test_examples_are_left_out_and_counted(run: Callable[..., RunRecord]) -> None:
    found = group_errors(run(2, min_group=60), predictions(2), threshold=0.5)  # 100 women, 50 men
    assert found is not None
    assert found.left_out == 1
    assert {row.group for row in found.confusion} == {OVERALL, "f"}


def test_without_groups_there_is_one_curve_of_all(run: Callable[..., RunRecord], record: Make) -> None:
    alone = record(0, [1, 1], groups=[], classes=["no", "yes"])
    found = group_errors(alone, predictions(2), threshold=0.5)
    assert found is not None
    assert {row["group"] for figure in found.figures for row in figure.rows} == {OVERALL}
    assert {row.group for row in found.confusion} == {OVERALL}


def test_a_net_that_diverged_has_confusion_and_no_curves(run: Callable[..., RunRecord]) -> None:
    held_out = predictions(2)
    nowhere = np.full(held_out.n, np.nan)
    diverged = replace(held_out, confidence=nowhere, probability=np.column_stack([nowhere, nowhere]))
    found = group_errors(run(2), diverged, threshold=0.5)
    assert found is not None
    assert (len(found.confusion), found.figures) == (6, [])


def test_many_classes_have_no_table_of_confusion(run: Callable[..., RunRecord]) -> None:
    found = group_errors(run(11), predictions(11), threshold=None)
    assert found is not None
    assert found.confusion == []
