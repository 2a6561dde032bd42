"""Where the model fails: planted slices are found and described, noise is not."""

from dataclasses import replace

import numpy as np
import polars
import pytest

from umix.reports.minority import auroc, minority_groups, rank_minority
from umix.reports.page.clusters import feature_clusters
from umix.reports.page.slices import table_slices
from umix.reports.page.training_table import Source
from umix.reports.training_examples import Closer, Training


def training(u: np.ndarray, label: np.ndarray, **more: object) -> Training:
    empty = dict.fromkeys(("weight", "member", "correct", "visited", "row", "file", "closer"))
    return Training(label=label, uncertainty=u, **{**empty, **more})  # type: ignore[arg-type]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def test_the_columns_that_predict_uncertainty_are_found(rng: np.random.Generator) -> None:
    n = 2000
    table = polars.DataFrame(
        {"sex": rng.choice(["f", "m"], n), "age": rng.integers(18, 90, n), "noise": rng.normal(size=n)}
    )
    bad = (table["sex"] == "f").to_numpy() & (table["age"] > 60).to_numpy()
    u = np.where(bad, 0.8, 0.05) + rng.normal(size=n) * 0.02
    correct = (~bad)[None, :]
    some = training(u, rng.integers(0, 2, n), correct=correct, visited=np.ones_like(correct))
    slices = table_slices(some, Source(table, tuple(table.columns)), ["no", "yes"], "income")
    assert slices[0].description in ("sex = f and age > 60.5", "age > 60.5 and sex = f", "age > 60.5 and sex ≠ m")
    assert slices[0].error == 1.0
    assert slices[0].uncertainty == pytest.approx(0.8, abs=0.01)
    assert slices[0].size == bad[slices[0].examples[0]] * slices[0].size  # its examples are of the slice
    assert abs(slices[0].size / slices[0].measured - bad.mean()) < 0.05


def test_the_label_and_missing_values_may_describe_a_slice(rng: np.random.Generator) -> None:
    n = 1000
    x = rng.normal(size=n)
    missing = rng.random(n) < 0.3
    label = rng.integers(0, 2, n)
    table = polars.DataFrame({"x": [None if gone else value for gone, value in zip(missing, x, strict=True)]})
    u = np.where(missing & (label == 1), 0.9, 0.0)
    slices = table_slices(training(u, label), Source(table, ("x",)), ["no", "yes"], "income")
    assert set(slices[0].description.split(" and ")) == {"x = missing", "income = yes"}
    assert slices[0].error is None


def test_certain_examples_have_no_slices(rng: np.random.Generator) -> None:
    table = polars.DataFrame({"x": rng.normal(size=100)})
    assert table_slices(training(np.zeros(100), np.zeros(100, int)), Source(table, ("x",)), ["a", "b"], "y") == []


def test_clusters_are_those_of_the_features(rng: np.random.Generator) -> None:
    n = 120
    place = np.repeat([0, 1, 2], n // 3)
    features = rng.normal(size=(n, 10)) + 20 * place[:, None]
    closer = Closer(np.arange(n), features, place != 1, None)
    some = training(np.where(place == 1, 1.0, 0.5), place, closer=closer, member=place[:, None] == np.arange(3))
    slices = feature_clusters(some, ["a", "b", "c"], ["ga", "gb", "gc"])
    assert [one.size for one in slices] == [40, 40, 40]
    assert slices[0].description == "100% have the label b; 100% are of the group gb"
    assert slices[0].error == 1.0
    assert {place[index] for index in slices[0].examples} == {1}


def test_equal_features_have_no_clusters() -> None:
    closer = Closer(np.arange(50), np.zeros((50, 4)), np.ones(50, bool), None)
    assert feature_clusters(training(np.ones(50), np.zeros(50, int), closer=closer), ["a"], []) == []


def test_auroc_is_that_of_scikit_learn(rng: np.random.Generator) -> None:
    from sklearn.metrics import roc_auc_score

    u, positive = rng.integers(0, 6, 500) / 5, rng.random(500) < 0.2
    assert auroc(u, positive) == pytest.approx(roc_auc_score(positive, u), abs=1e-12)
    assert np.isnan(auroc(u, np.zeros(500, bool)))


def test_the_minority_is_what_is_smaller_than_average_and_empty_groups_are_none() -> None:
    assert minority_groups(np.array([90, 10, 0])).tolist() == [False, True, False]
    member = np.arange(100)[:, None] >= np.array([0, 90])
    member[90:, 0] = False
    seen = rank_minority(np.where(np.arange(100) >= 80, 1.0, 0.0), member, ["large", "small"])
    assert seen is not None
    assert seen.names == ("small",)
    assert seen.thresholds[1].precision == 0.5
    assert seen.thresholds[1].recall == 1.0
    assert rank_minority(np.zeros(100), None, []) is None


def test_forgetting_counts_falls_from_right_to_wrong() -> None:
    correct = np.array([[1, 1, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]], dtype=bool)
    some = training(np.zeros(3), np.zeros(3, int), correct=correct, visited=np.ones_like(correct))
    assert some.forgetting is not None
    assert some.forgetting.tolist() == [2, 1, 0]
    unseen = replace(some, visited=np.array([[1, 1, 1], [0, 1, 1], [1, 1, 1], [1, 1, 1]], dtype=bool))
    assert unseen.forgetting is not None
    assert unseen.forgetting.tolist() == [1, 1, 0]
