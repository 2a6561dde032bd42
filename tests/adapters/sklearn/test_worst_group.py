"""The worst group as a metric, and as a scorer that chooses in a search."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate

from umix import UserError
from umix.adapters.sklearn import worst_group_accuracy, worst_group_scorer


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


class Threshold(ClassifierMixin, BaseEstimator):
    def __init__(self, at: float = 0.0) -> None:
        self.at = at

    def fit(self, x: np.ndarray, y: np.ndarray) -> "Threshold":
        self.classes_ = np.unique(y)
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        return (x[:, 0] > self.at).astype(int)


def test_it_is_the_lowest_accuracy_of_a_label_and_a_value_where_all_count() -> None:
    true, said = ["n", "n", "n", "y", "y", "y"], ["n", "y", "n", "y", "y", "n"]
    accuracy = partial(worst_group_accuracy, min_group=1)
    assert accuracy(true, said, groups=["a", "a", "b", "a", "b", "b"]) == 0.5
    assert accuracy(true, said, groups=["a", None, "b", "a", "b", None]) == 1.0
    assert accuracy(true, np.array(said)[:, None], groups=["a", "a", "b", "a", "b", "b"]) == 0.5
    with pytest.raises(ValueError, match="inconsistent"):
        accuracy(true, said[:1], groups=["a"] * 6)
    assert accuracy(true, said, groups={"p": [1] * 6, "q": [1, 2, 1, 1, 1, 1]}) == 0.0


def test_a_group_of_few_rows_counts_where_it_fails_beyond_doubt() -> None:
    true, groups = [0] * 100 + [0] * 8, ["a"] * 100 + ["b"] * 8
    assert worst_group_accuracy(true, [0] * 95 + [1] * 5 + [1] * 7 + [0], groups=groups) == 1 / 8
    assert worst_group_accuracy(true, [0] * 95 + [1] * 5 + [1] * 2 + [0] * 6, groups=groups) == 0.95


@pytest.mark.usefixtures("routing")
def test_a_search_can_choose_by_the_worst_group() -> None:
    """The average is better at 0, because few rows are in the group that is wrong there; that group is better at 1."""
    x = np.array([[-1.0]] * 90 + [[2.0]] * 90 + [[0.5]] * 12)
    y, side = np.array([0] * 90 + [1] * 90 + [0] * 12), np.array(["a"] * 180 + ["b"] * 12)
    x[150:180] = 0.5  # of class 1, where the threshold 1 is wrong
    folds, grid = StratifiedKFold(3, shuffle=True, random_state=0), {"at": [0.0, 1.0]}
    by_average = GridSearchCV(Threshold(), grid, cv=folds, error_score="raise").fit(x, y)
    by_worst = GridSearchCV(Threshold(), grid, scoring=worst_group_scorer(), cv=folds, error_score="raise")
    by_worst.fit(x, y, groups=side)
    assert (by_average.best_params_, by_worst.best_params_) == ({"at": 0.0}, {"at": 1.0})
    scores = cross_validate(Threshold(1.0), x, y, scoring=worst_group_scorer(), cv=folds, params={"groups": side})
    assert (scores["test_score"] >= 0.5).all()


def test_without_routing_the_scorer_says_what_it_needs() -> None:
    with pytest.raises(
        UserError, match=r"^worst_group_scorer must be given groups, .*enable_metadata_routing=True\) first\.$"
    ):
        worst_group_scorer()


@pytest.mark.parametrize("predicted", [[0], ["no", "yes"], [0.2, 0.8]])
def test_predictions_that_no_label_can_equal_are_refused_and_not_counted_as_wrong(predicted: list[object]) -> None:
    with pytest.raises((UserError, ValueError), match=r"redictions|inconsistent numbers of samples: \[2, 1\]"):
        worst_group_accuracy([0, 1], predicted, groups=["a", "b"])
