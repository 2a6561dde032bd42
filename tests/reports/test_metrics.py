"""Metrics by group against scikit-learn and fairlearn."""

import math

import numpy as np
import pandas
import polars
import pytest
from fairlearn.metrics import (
    MetricFrame,
    demographic_parity_difference,
    equalized_odds_difference,
    false_positive_rate,
    selection_rate,
)
from sklearn.metrics import (
    accuracy_score,
    auc,
    average_precision_score,
    balanced_accuracy_score,
    brier_score_loss,
    confusion_matrix,
    f1_score,
    log_loss,
    precision_score,
    recall_score,
    roc_auc_score,
)

from umix.core.statistics import wilson
from umix.errors import UserError
from umix.reports.metrics import Metric, by_group, calibration, difference, measure, roc

CLASSES = ["no", "yes"]


@pytest.fixture(scope="module")
def frame() -> polars.DataFrame:
    rng = np.random.default_rng(0)
    n = 400
    sex = rng.choice(["f", "m"], n)
    y = rng.random(n) < np.where(sex == "m", 0.6, 0.4)
    p = np.clip(0.5 + 0.25 * (2 * y - 1) + 0.3 * rng.normal(size=n) + 0.1 * (sex == "m"), 0, 1).astype("float32")
    return polars.DataFrame(
        {
            "label": np.where(y, "yes", "no"),
            "prediction": np.where(p > 0.5, "yes", "no"),
            "p_no": 1 - p,
            "p_yes": p,
            "sex": sex,
        }
    )


def cost_by_hand(y: np.ndarray, q: np.ndarray, *, positive: str, missed: float, false: float) -> float:
    """The mean cost by scikit-learn's confusion matrix."""
    (_, fp), (fn, _) = confusion_matrix(y == positive, q == positive, labels=[False, True])
    return float((missed * fn + false * fp) / len(y))


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("accuracy", accuracy_score),
        ("recall:yes", lambda y, q: recall_score(y, q, pos_label="yes")),
        ("recall:no", lambda y, q: recall_score(y, q, pos_label="no")),
        ("precision:yes", lambda y, q: precision_score(y, q, pos_label="yes")),
        ("false_positive_rate:yes", lambda y, q: false_positive_rate(y, q, pos_label="yes")),
        ("selection_rate:yes", lambda y, q: selection_rate(y, q, pos_label="yes")),
        ("balanced_accuracy", balanced_accuracy_score),
        ("f1:yes", lambda y, q: f1_score(y, q, pos_label="yes")),
        ("f1:no", lambda y, q: f1_score(y, q, pos_label="no")),
        ("macro_f1", lambda y, q: f1_score(y, q, average="macro")),
        ("cost:FN=5,FP=1", lambda y, q: cost_by_hand(y, q, positive="yes", missed=5, false=1)),
        ("cost:no:FN=0.5,FP=2", lambda y, q: cost_by_hand(y, q, positive="no", missed=0.5, false=2)),
    ],
)
def test_counted_metrics_are_those_of_scikit_learn_and_fairlearn_in_every_group(frame, name, reference):
    expected = MetricFrame(
        metrics=reference,
        y_true=frame["label"].to_numpy(),
        y_pred=frame["prediction"].to_numpy(),
        sensitive_features=frame["sex"].to_numpy(),
    )
    found = by_group(frame, Metric.parse(name, CLASSES), CLASSES, ["sex"])
    assert found[""].value == pytest.approx(expected.overall)
    for group, value in expected.by_group.items():
        assert found[group].value == pytest.approx(value)


def test_scores_are_those_of_scikit_learn(frame):
    y, p = frame["label"].to_numpy() == "yes", frame["p_yes"].to_numpy()
    auroc = by_group(frame, Metric.parse("auroc", CLASSES), CLASSES, ["sex"], draws=40)
    assert auroc[""].value == pytest.approx(roc_auc_score(y, p))
    women = frame["sex"].to_numpy() == "f"
    assert auroc["f"].value == pytest.approx(roc_auc_score(y[women], p[women]))
    assert auroc["f"].interval.low < auroc["f"].value < auroc["f"].interval.high
    precision = by_group(frame, Metric.parse("average_precision", CLASSES), CLASSES, ["sex"], draws=40)
    assert precision["f"].value == pytest.approx(average_precision_score(y[women], p[women]))
    assert precision["f"].interval.low < precision["f"].value < precision["f"].interval.high
    inner = frame.filter(polars.col("p_yes").is_between(0.001, 0.999))
    loss = by_group(inner, Metric.parse("log_loss", CLASSES), CLASSES, ["sex"])
    given = inner.select("p_no", "p_yes").to_numpy()
    assert loss[""].value == pytest.approx(log_loss(inner["label"], given, labels=CLASSES), rel=1e-5)
    brier = by_group(frame, Metric.parse("brier", CLASSES), CLASSES, [])[""]
    assert brier.value == pytest.approx(brier_score_loss(y, p), abs=1e-6)


def test_the_area_under_the_points_of_the_roc_curve_is_that_of_scikit_learn(frame):
    y, p = frame["label"].to_numpy() == "yes", frame["p_yes"].to_numpy()
    assert auc(*roc(y, p, most=10_000)) == pytest.approx(roc_auc_score(y, p))
    assert auc(*roc(y, p)) == pytest.approx(roc_auc_score(y, p), abs=0.01)
    assert len(roc(y, p, most=50)[0]) == 50
    assert len(roc(y[y], p[y])[0]) == 0


def test_every_example_is_in_one_bin_of_the_calibration_curve():
    p = np.random.default_rng(0).permutation(400) / 400
    y = np.random.default_rng(1).random(400) < p
    mean, share = calibration(y, p)
    assert len(mean) == 10
    assert share.mean() == pytest.approx(y.mean())  # the bins are equally large
    assert mean.mean() == pytest.approx(p.mean(), abs=1e-6)
    assert [len(calibration(y[:n], p[:n])[0]) for n in (0, 10, 70)] == [0, 1, 2]


def test_the_calibration_error_is_that_of_ten_bins_by_hand():
    p = np.array([0.95, 0.95, 0.55, 0.55], dtype="float32")
    frame = polars.DataFrame(
        {"label": ["yes", "no", "yes", "yes"], "prediction": ["yes"] * 4, "p_no": 1 - p, "p_yes": p}
    )
    found = by_group(frame, Metric.parse("calibration_error", CLASSES), CLASSES, [])[""]
    assert found.value == pytest.approx((2 * abs(0.5 - 0.95) + 2 * abs(1 - 0.55)) / 4, abs=1e-6)


def test_the_interval_of_a_small_calibration_error_holds_its_value():
    """Chance adds to the error of every bin, so draws of the examples have larger errors than the examples."""
    rng = np.random.default_rng(0)
    p = rng.uniform(size=400)
    y = np.where(rng.uniform(size=400) < p, "yes", "no")
    metric = Metric.parse("calibration_error", CLASSES)
    found = measure(metric, y, y, {"no": 1 - p, "yes": p})
    assert found.interval.low <= found.value <= found.interval.high


def test_the_calibration_error_of_two_classes_sees_errors_that_cancel_in_the_confidence():
    p = np.repeat([0.25, 0.75], 100)
    y = np.concatenate([np.arange(100) < 5, np.arange(100) < 55])  # 5 and 55 of 100: both are 20 too high
    frame = polars.DataFrame(
        {"label": np.where(y, "yes", "no"), "prediction": ["yes"] * 200, "p_no": 1 - p, "p_yes": p}
    )
    error = Metric.parse("calibration_error", CLASSES)
    assert by_group(frame, error, CLASSES, [])[""].value == pytest.approx(0.2)
    swapped = polars.DataFrame({"label": frame["label"], "prediction": ["yes"] * 200, "p_yes": p, "p_no": 1 - p})
    assert by_group(swapped, error, CLASSES, [])[""].value == pytest.approx(0.2)
    three = frame.with_columns(p_maybe=polars.lit(0.0))
    assert by_group(three, error, [*CLASSES, "maybe"], [])[""].value == pytest.approx(0, abs=1e-9)  # (95 + 55) / 200


def test_differences_are_those_of_fairlearn(frame):
    y, q = (frame[name].to_numpy() == "yes" for name in ("label", "prediction"))
    sex = frame["sex"].to_numpy()
    parity = difference(frame, Metric.parse("demographic_parity_difference", CLASSES), CLASSES, ["sex"], min_group=1)
    assert parity == pytest.approx(demographic_parity_difference(y, q, sensitive_features=sex))
    odds = difference(frame, Metric.parse("equalized_odds_difference", CLASSES), CLASSES, ["sex"], min_group=1)
    assert odds == pytest.approx(equalized_odds_difference(y, q, sensitive_features=sex))


def test_metrics_of_three_classes_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    y, q = rng.choice(["a", "b", "c"], size=(2, 300), p=[0.6, 0.3, 0.1])
    p = rng.dirichlet([1, 1, 1], size=300)
    columns = {"label": y, "prediction": q} | {f"p_{name}": p[:, k] for k, name in enumerate("abc")}
    frame, classes = polars.DataFrame(columns), ["a", "b", "c"]
    found = {
        name: by_group(frame, Metric.parse(name, classes), classes, [], draws=0)[""].value
        for name in ("balanced_accuracy", "macro_f1", "f1:b", "log_loss", "average_precision:c", "cost:b:FN=2,FP=1")
    }
    assert found == {
        "balanced_accuracy": pytest.approx(balanced_accuracy_score(y, q)),
        "macro_f1": pytest.approx(f1_score(y, q, average="macro")),
        "f1:b": pytest.approx(f1_score(y == "b", q == "b")),
        "log_loss": pytest.approx(log_loss(y, p, labels=classes)),
        "average_precision:c": pytest.approx(average_precision_score(y == "c", p[:, 2])),
        "cost:b:FN=2,FP=1": pytest.approx(cost_by_hand(y, q, positive="b", missed=2, false=1)),
    }


def test_a_class_that_neither_occurs_nor_is_predicted_takes_no_part():
    frame = polars.DataFrame({"label": ["a", "a", "b"], "prediction": ["a", "b", "b"]})
    classes = ["a", "b", "c"]
    assert by_group(frame, Metric("macro_f1"), classes, [])[""].value == pytest.approx(2 / 3)
    assert math.isnan(by_group(frame, Metric("f1", "c"), classes, [])[""].value)
    assert by_group(frame, Metric("cost", "c", (1, 1)), classes, [])[""].value == 0


def test_the_interval_of_a_counted_metric_covers_as_often_as_it_says():
    """The accuracy of 200 examples, of which it is known: balanced accuracy of equally large classes is the accuracy."""
    rng, covered = np.random.default_rng(0), 0
    y = np.repeat(["no", "yes"], 100)
    for _ in range(200):
        wrong = rng.random(200) < 0.2
        q = np.where(wrong, np.where(y == "no", "yes", "no"), y)
        low, high = (getattr(measure(Metric("balanced_accuracy"), y, q, {}).interval, end) for end in ("low", "high"))
        covered += low <= 0.8 <= high
    assert 0.9 <= covered / 200 <= 0.99


def test_groups_that_are_too_small_make_no_difference(frame):
    few = polars.concat([frame, frame[:1].with_columns(sex=polars.lit("x"), prediction=polars.lit("yes"))])
    metric = Metric.parse("selection_rate", CLASSES)
    assert difference(few, metric, CLASSES, ["sex"], min_group=30) == pytest.approx(
        difference(frame, metric, CLASSES, ["sex"], min_group=1)
    )
    assert math.isnan(difference(frame, metric, CLASSES, ["sex"], min_group=1000))


def test_a_share_has_wilsons_interval_and_an_empty_one_none(frame):
    right = int((frame["label"] == frame["prediction"]).sum())
    assert by_group(frame, Metric("accuracy"), CLASSES, [])[""].interval == wilson(right, len(frame))
    only_no = frame.filter(polars.col("label") == "no")
    assert math.isnan(by_group(only_no, Metric("recall", "yes"), CLASSES, [])[""].value)
    assert math.isnan(by_group(only_no, Metric("auroc", "yes"), CLASSES, [])[""].value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("recal:yes", "did you mean 'recall'"),
        ("recall:maybe", "Unknown class of the metric recall 'maybe'"),
        ("accuracy:yes", "must be given without a class"),
        ("macro_f1:yes", "must be given without a class"),
        ("cost", "as in cost:FN=5,FP=1, got ''"),
        ("cost:FN=5", "as in cost:FN=5,FP=1, got 'FN=5'"),
        ("cost:FN=-1,FP=1", "numbers of at least 0"),
        ("cost:FN=a,FP=1", "numbers of at least 0"),
        ("cost:FN=1,FP=1,TN=2", "numbers of at least 0"),
        ("cost:maybe:FN=1,FP=1", "Unknown class of the metric cost 'maybe'"),
    ],
)
def test_wrong_metrics_are_one_sentence(text, message):
    with pytest.raises(UserError, match=message):
        Metric.parse(text, CLASSES)


def test_of_many_classes_one_must_be_named():
    with pytest.raises(UserError, match="must name a class, recall:CLASS, among a, b, c"):
        Metric.parse("recall", ["a", "b", "c"])


def test_the_frame_of_a_result_goes_to_fairlearn_as_it_is():
    import umix

    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    table = polars.DataFrame({"x": rng.normal(size=200) + y, "sex": rng.choice(["f", "m"], 200), "y": y})
    result = umix.train(umix.task_from_table(table, label="y", groups=["sex"]), "erm", fit={"epochs": 2})
    held_out = result.frame("test")
    assert held_out.columns == ["row", "label", "prediction", "p_0", "p_1", "group", "sex"]
    by_sex = MetricFrame(
        metrics=accuracy_score,
        y_true=held_out["label"],
        y_pred=held_out["prediction"],
        sensitive_features=held_out["sex"].to_numpy(),
    )
    rates = result.metrics("accuracy")
    assert by_sex.overall == pytest.approx(rates["value"][0])
    assert by_sex.by_group["f"] == pytest.approx(rates.filter(polars.col("group") == "f")["value"][0])
    assert accuracy_score(held_out["label"], held_out["prediction"]) == pytest.approx(result.summary().average)
    assert isinstance(pandas.DataFrame(held_out.to_dict(as_series=False)), pandas.DataFrame)
