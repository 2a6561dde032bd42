"""The weights of rows alone: of all rows, chosen on some, by uncertainty or by groups."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from threadpoolctl import threadpool_limits

from umix import UMIXClassifier, UserError, sample_weights

FIXED: dict[str, Any] = {"eta": 3, "pool": "example", "length": 2}


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    return make_classification(200, 5, weights=[0.75], flip_y=0.1, random_state=0)


def test_every_row_has_a_weight_that_grows_with_how_often_it_is_wrong(rows: tuple[np.ndarray, np.ndarray]) -> None:
    """With two repeats a row is wrong in none, half or all of them: weights are as 1, 2.5 and 4."""
    x, y = rows
    weight = sample_weights(LogisticRegression(), x, y, settings=FIXED)
    assert weight.dtype == np.float64
    assert weight.mean() == pytest.approx(1)
    assert set(np.round(weight / weight.min(), 4)) == {1, 2.5, 4}
    wrong = LogisticRegression().fit(x, y).predict(x) != y
    assert weight[wrong].mean() > 2 * weight[~wrong].mean()


def test_what_is_auto_is_what_the_classifier_chooses_and_is_used_for_all_rows(
    rows: tuple[np.ndarray, np.ndarray],
) -> None:
    x, y = rows
    free = {"pool": "balance", "eta": "auto"}
    weight = sample_weights(GaussianNB(), x, y, settings=free, random_state=1)
    model = UMIXClassifier(estimator=GaussianNB(), settings=free, threshold="off", random_state=1)
    chosen = model.fit(x, y).choices_
    settings = {name: chosen[name] for name in ("eta", "pool", "length", "power") if name in chosen}
    assert np.array_equal(weight, sample_weights(GaussianNB(), x, y, settings=settings, random_state=1))
    assert weight.std() > 0


def test_boosted_trees_are_judged_by_stages_that_have_not_seen_the_row(rows: tuple[np.ndarray, np.ndarray]) -> None:
    """Trees that can memorise are right on all rows that they have seen; the weights differ all the same."""
    x, y = rows
    trees = HistGradientBoostingClassifier(max_iter=20, min_samples_leaf=1, max_leaf_nodes=None, learning_rate=1.0)
    with threadpool_limits(1):
        assert trees.fit(x, y).score(x, y) == 1
        weight = sample_weights(trees, x, y, settings=FIXED)
    assert weight.std() > 0.3


@pytest.mark.parametrize(("method", "settings"), [("reweight", {"by": "group"}), ("group_mixup", None)])
def test_groups_count_the_same(
    method: str, settings: dict[str, Any] | None, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    x, y = rows
    side = np.where(x[:, 0] > 0.5, "right", "left")
    weight = sample_weights(GaussianNB(), x, y, groups=side, method=method, settings=settings)
    totals = [weight[(y == label) & (side == value)].sum() for label in (0, 1) for value in ("left", "right")]
    np.testing.assert_allclose(totals, len(y) / 4, rtol=1e-6)


def test_given_weights_are_multiplied_and_rows_of_weight_zero_stay_out(rows: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = rows
    given = np.where(np.arange(len(y)) % 4 == 0, 0.0, 1.0)
    weight = sample_weights(GaussianNB(), x, y, settings=FIXED, sample_weight=given)
    assert (weight[given == 0] == 0).all()
    assert weight.mean() == pytest.approx(1)
    there = given > 0
    alone = sample_weights(GaussianNB(), x[there], y[there], settings=FIXED)
    np.testing.assert_allclose(weight[there] / weight[there].mean(), alone)
    heavy = sample_weights(GaussianNB(), x, y, method="erm", sample_weight=1.0 + y)
    np.testing.assert_allclose(heavy, (1.0 + y) / (1.0 + y).mean())


def test_the_weights_alone_train_no_final_model(rows: tuple[np.ndarray, np.ndarray]) -> None:
    class Counted(ClassifierMixin, BaseEstimator):
        fits: list[int] = []  # noqa: RUF012 — shared by all copies

        def fit(self, x: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None) -> "Counted":
            self.fits.append(len(x))
            self.model_ = GaussianNB().fit(x, y, sample_weight)
            return self

        def predict_proba(self, x: np.ndarray) -> np.ndarray:
            return self.model_.predict_proba(x)

    sample_weights(Counted(), *rows, settings=FIXED)
    assert Counted.fits == [160] * 10  # two repeats of five folds of all 200 rows


def test_best_is_settled_to_the_method_that_wins(rows: tuple[np.ndarray, np.ndarray]) -> None:
    weight = sample_weights(GaussianNB(), *rows, method="best", settings={"trials": 2})
    assert weight.shape == (200,)
    assert weight.mean() == pytest.approx(1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "group_dro", "groups": [0, 1] * 100}, r"^method='group_dro' must train a net"),
        ({"method": "dfr", "groups": [0] * 200}, r"^method must be one that weighs rows, got 'dfr'; choose umix"),
        ({"method": "reweight", "settings": {"by": "group"}}, r"^method='reweight' trains with groups, but none are"),
        ({"val_share": 0}, r"^val_share must be a number in \(0, 1\), got 0\.$"),
    ],
    ids=["gradients", "no weights", "no groups", "no held-out rows"],
)
def test_what_gives_no_weights_is_refused_in_a_sentence(
    given: dict[str, Any], message: str, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    with pytest.raises(UserError, match=message):
        sample_weights(GaussianNB(), *rows, **given)
