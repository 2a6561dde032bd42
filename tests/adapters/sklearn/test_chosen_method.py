"""Settings of UMIX are parameters of the classifier too, beside ``settings``, which has those of all methods."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV

from umix import UMIXClassifier, UserError
from umix.adapters.sklearn.classifier import PARAMETERS
from umix.methods.umix import UMIX

pytestmark = pytest.mark.filterwarnings("ignore:The net predicted a single class", "ignore:The uncertainty is")

Made = Callable[..., UMIXClassifier]
Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


def test_every_parameter_of_the_method_is_explicit_optional_and_one_of_umix() -> None:
    given = inspect.signature(UMIXClassifier).parameters
    assert {given[name].default for name in PARAMETERS} == {None}
    assert set(PARAMETERS) <= set(UMIX.model_fields)


def test_a_parameter_and_a_setting_are_the_same_thing(small: Made, rows: Rows) -> None:
    x, y, _ = rows
    fixed = {"eta": 5, "pool": "example", "length": 2, "sigma": 1, "per_example": True}
    by_name = small(**fixed).fit(x, y)
    by_settings = UMIXClassifier(**{**small().get_params(), **dict.fromkeys(PARAMETERS), "settings": fixed}).fit(x, y)
    assert np.array_equal(by_name.predict_proba(x), by_settings.predict_proba(x))
    assert np.array_equal(clone(by_name).fit(x, y).weights_, by_name.weights_, equal_nan=True)
    twice = small(**fixed, settings={"eta": 5}).fit(x, y)  # the same value is no contradiction
    assert np.array_equal(twice.predict_proba(x), by_name.predict_proba(x))
    assert not np.array_equal(small(eta=0).fit(x, y).predict_proba(x), by_name.predict_proba(x))


def test_searches_set_them(small: Made, rows: Rows) -> None:
    x, y, _ = rows
    search = GridSearchCV(small(), {"eta": [1, 10]}, cv=2, error_score="raise").fit(x, y)
    known = ~np.isnan(search.best_estimator_.weights_)
    u, w = search.best_estimator_.uncertainty_[known], search.best_estimator_.weights_[known]
    np.testing.assert_allclose(
        w, (eta := search.best_params_["eta"]) * u / (1 + eta * u.mean()) + 1 / (1 + eta * u.mean()), 1e-5
    )
    draws = {"sigma": np.array([0.0, 0.5]), "length": np.arange(1, 3), "per_example": np.array([True, False])}
    RandomizedSearchCV(small(), draws, n_iter=2, cv=2, error_score="raise", random_state=0).fit(x, y)


def test_methods_are_searched_with_a_grid_each(small: Made, rows: Rows) -> None:
    x, y, _ = rows
    grid = [{"method": ["umix"], "eta": [1, 10]}, {"method": ["jtt"], "settings": [{"upweight": 2}]}]
    plain = UMIXClassifier(**{**small().get_params(), **dict.fromkeys(PARAMETERS)})
    search = GridSearchCV(plain.set_params(epochs=2), grid, cv=2, error_score="raise").fit(x, y)
    assert len(search.cv_results_["params"]) == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": {"eta": 4}}, r"^eta must be given once, got eta=3 and settings=\{'eta': 4\}; leave one out\.$"),
        (
            {"method": "jtt"},
            r"^(eta|pool|length)=.* must be left out for method='jtt', which has no such setting; a search over",
        ),
        ({"sigma": 5}, r"^umix\.sigma must be a number in \[0, 1\], got 5\.$"),
        ({"method": "umx"}, r"^Unknown method 'umx'; did you mean 'umix'\?"),
    ],
)
def test_a_parameter_that_cannot_be_used_is_refused_in_a_sentence(
    changes: dict[str, Any], message: str, small: Made, rows: Rows
) -> None:
    with pytest.raises(UserError, match=message):
        small().set_params(**changes).fit(*rows[:2])
