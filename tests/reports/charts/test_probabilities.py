"""ROC and calibration curves draw scikit-learn's numbers of every group."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import confusion_matrix, roc_auc_score, roc_curve

from umix.reports.charts.palette import GREY, group_colours
from umix.reports.charts.probabilities import calibration_chart, calibration_rows, roc_chart, roc_rows
from umix.reports.predictions import Predictions


@pytest.fixture(scope="module")
def examples() -> Predictions:
    """600 test examples of two classes; the scores of the last 200 are noisier."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 600)
    noise = np.where(np.arange(600) < 400, 0.15, 0.4)
    score = np.clip(0.3 + 0.4 * label + noise * rng.normal(size=600), 0, 1)
    return Predictions(
        label=label,
        prediction=(score >= 0.4).astype(int),
        confidence=np.maximum(score, 1 - score),
        probability=np.column_stack([1 - score, score]),
        member=np.zeros((600, 0), dtype=bool),
        row=None,
        file=None,
        split=np.repeat("test", 600),
    )


GROUPS = {"clear": np.arange(600) < 400, "noisy": np.arange(600) >= 400}


@pytest.mark.parametrize("group", GROUPS)
def test_the_roc_curve_of_a_group_is_that_of_scikit_learn(examples: Predictions, group: str) -> None:
    inside = GROUPS[group]
    y, p = examples.label[inside], examples.probability[inside, 1]
    rows = [row for row in roc_rows(examples, GROUPS) if row["group"] == group]
    fpr, tpr, _ = roc_curve(y, p)
    expected = {(round(100 * x, 2), round(100 * y, 2)) for x, y in zip(fpr, tpr, strict=True)}
    points = [(row["false_positive"], row["true_positive"]) for row in rows if row["place"] >= 0]
    assert set(points) <= expected
    assert (points[0], points[-1]) == ((0.0, 0.0), (100.0, 100.0))
    assert len(points) >= min(90, len(expected))
    assert rows[0]["auroc"] == pytest.approx(roc_auc_score(y, p), abs=1e-4)


def test_the_dot_of_a_group_is_what_the_run_predicts(examples: Predictions) -> None:
    inside = GROUPS["noisy"]
    (tn, fp), (fn, tp) = confusion_matrix(examples.label[inside], examples.prediction[inside])
    (own,) = [row for row in roc_rows(examples, GROUPS) if row["group"] == "noisy" and row["place"] < 0]
    assert own["false_positive"] == pytest.approx(100 * fp / (fp + tn), abs=0.01)
    assert own["true_positive"] == pytest.approx(100 * tp / (tp + fn), abs=0.01)


@pytest.mark.parametrize(("group", "bins"), [("clear", 10), ("noisy", 6)])
def test_the_calibration_curve_of_a_group_is_that_of_scikit_learn(examples: Predictions, group: str, bins: int) -> None:
    inside = GROUPS[group]
    y, p = examples.label[inside], examples.probability[inside, 1]
    share, mean = calibration_curve(y, p, n_bins=bins, strategy="quantile")
    rows = [row for row in calibration_rows(examples, GROUPS) if row["group"] == group]
    assert [row["predicted"] for row in rows] == pytest.approx(100 * mean, abs=0.01)
    assert [row["observed"] for row in rows] == pytest.approx(100 * share, abs=0.01)
    assert rows[0]["gap"] == pytest.approx(100 * abs(y.mean() - p.mean()), abs=0.01)


def test_a_group_of_one_class_has_no_roc_curve(examples: Predictions) -> None:
    only = {"ones": examples.label == 1}
    assert roc_rows(examples, only) == []
    assert calibration_rows(examples, only)


def test_the_least_area_and_the_largest_gap_are_told(examples: Predictions) -> None:
    colours = group_colours(list(GROUPS))
    roc = roc_chart(roc_rows(examples, GROUPS), colours, positive="yes", threshold=0.4)
    assert "Dots: the threshold of this run, 0.4. The lowest area under the curve is that of noisy" in roc.description
    assert [entry.name.split(" (")[0] for entry in roc.legend] == ["clear", "noisy"]
    rows = calibration_rows(examples, GROUPS)
    worst = max(rows, key=lambda row: row["gap"])
    told = calibration_chart(rows, colours, positive="yes").description
    assert f"furthest off in {worst['group']}: {worst['gap']:.1f} points." in told


def test_of_many_groups_the_others_share_a_grey_entry(examples: Predictions) -> None:
    groups = {f"g{k}": np.arange(600) // 100 == k for k in range(6)}
    colours = group_colours(list(groups), worst=["g5", "g4", "g3", "g2"])
    figure = roc_chart(roc_rows(examples, groups), colours, positive="yes", threshold=0.4)
    assert [entry.name for entry in figure.legend][-1] == "2 other groups"
    assert figure.legend[-1].colour == GREY
