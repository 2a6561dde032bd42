"""An estimator of the user's own inside UMIXClassifier: copied, given the rows as they are, weighted, looked at stage by stage."""

import contextlib
import pickle
import unittest
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas
import polars
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_blobs, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from umix import UMIXClassifier, UserError
from umix.adapters.sklearn.inputs import divide_rows

pytestmark = pytest.mark.filterwarnings("ignore:The selected model predicts", "ignore:The first model got")

FIXED: dict[str, Any] = {"eta": 3, "pool": "example", "start": 0, "length": 2}


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    with threadpool_limits(1):
        yield


def boosting(**options: Any) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(**{"max_iter": 10, "min_samples_leaf": 2, "max_leaf_nodes": 5, **options})


def quick(estimator: Any, method: str = "umix", **changes: Any) -> UMIXClassifier:
    settings = {"settings": FIXED} if method == "umix" else {}
    return UMIXClassifier(method, estimator=estimator, **{**settings, **changes})


def plain(estimator: Any) -> UMIXClassifier:
    """Nothing but the estimator: no weights, no choice."""
    return quick(estimator, "erm", threshold="off", select="last")


def trained_on(y: np.ndarray) -> np.ndarray:
    """The rows that a fit to these labels trains on; all others are held out."""
    classes, codes = np.unique(y, return_inverse=True)
    names = tuple(map(str, classes))
    return divide_rows(codes, names, groups=None, weight=None, val_share=0.2, seed=0).rows["train"]


@pytest.fixture(scope="module")
def three() -> tuple[np.ndarray, np.ndarray]:
    x, y = make_classification(240, 6, n_informative=4, n_classes=3, weights=[0.6, 0.3], flip_y=0.1, random_state=0)
    return x, np.array(["oak", "elm", "ash"])[y]


@pytest.fixture(scope="module")
def people() -> tuple[pandas.DataFrame, np.ndarray]:
    """A frame with texts, categories, numbers and a missing value; the label depends on all of them."""
    rng = np.random.default_rng(0)
    town = rng.choice(["Bonn", "Köln", "Ulm"], 200)
    frame = pandas.DataFrame(
        {"town": town, "kind": pandas.Categorical(rng.choice(["a", "b"], 200)), "age": rng.normal(40, 10, 200)}
    )
    y = np.where((town == "Ulm") ^ (frame["kind"] == "a").to_numpy() ^ (frame["age"] > 50).to_numpy(), "yes", "no")
    frame.loc[3, "age"] = np.nan
    return frame, y


def exceptions(estimator: UMIXClassifier) -> dict[str, str]:
    return {
        "check_sample_weight_equivalence_on_dense_data": "of two equal rows one may be held out, one row of weight 2 is whole",
        "check_sample_weight_equivalence_on_sparse_data": "of two equal rows one may be held out, one row of weight 2 is whole",
    }


@parametrize_with_checks([quick(LogisticRegression(), "reweight", threshold="off")], expected_failed_checks=exceptions)
def test_scikit_learns_contract_is_kept(estimator: UMIXClassifier, check: Callable[[UMIXClassifier], None]) -> None:
    with contextlib.suppress(unittest.SkipTest):  # what scikit-learn checks only where the array API is switched on
        check(estimator)


@pytest.mark.parametrize(
    "estimator",
    [
        boosting(random_state=3, max_iter=30),
        boosting(random_state=3, max_iter=40, early_stopping=True, n_iter_no_change=2),
        RandomForestClassifier(8, random_state=3),
        make_pipeline(StandardScaler(), boosting(random_state=3, max_iter=7)),
        Pipeline([("outer", make_pipeline(StandardScaler(), LogisticRegression(class_weight={"oak": 1, "elm": 9})))]),
    ],
    ids=["boosting", "early stopping", "forest", "boosting in a pipeline", "pipeline in a pipeline"],
)
def test_erm_with_argmax_and_the_last_look_is_the_estimator_itself(
    estimator: Any, three: tuple[np.ndarray, np.ndarray]
) -> None:
    x, y = three[0][three[1] != "ash"], three[1][three[1] != "ash"]
    model = plain(estimator).fit(x, y)
    rows = trained_on(y)
    own = clone(estimator).fit(x[rows], y[rows])
    assert np.array_equal(model.predict(x), own.predict(x))
    assert np.array_equal(model.model_.predict_proba(x), own.predict_proba(x))
    np.testing.assert_allclose(model.predict_proba(x), own.predict_proba(x), rtol=0, atol=1e-14)


@pytest.mark.system
@pytest.mark.parametrize("package", ["lightgbm", "xgboost", "catboost"])
def test_other_libraries_are_looked_at_stage_by_stage_and_take_texts_as_labels(
    package: str, three: tuple[np.ndarray, np.ndarray]
) -> None:
    library = pytest.importorskip(package)
    options: dict[str, dict[str, Any]] = {
        "lightgbm": {"verbosity": -1, "n_jobs": 1},
        "xgboost": {"n_jobs": 1, "max_depth": 3},
        "catboost": {"verbose": False, "allow_writing_files": False, "thread_count": 1, "depth": 3},
    }
    name = {"lightgbm": "LGBM", "xgboost": "XGB", "catboost": "CatBoost"}[package]
    estimator = getattr(library, f"{name}Classifier")(n_estimators=12, random_state=0, **options[package])
    x, y = three
    model = plain(estimator).fit(x, y)
    rows, codes = trained_on(y), np.unique(y, return_inverse=True)[1]
    own = clone(estimator).fit(x[rows], codes[rows])
    np.testing.assert_allclose(model.predict_proba(x), own.predict_proba(x), atol=1e-6)
    assert model.stages_ == model.best_epoch_ + 1 == 12
    weighted = quick(estimator, epochs=4, select="average").fit(x, y)
    assert weighted.stages_ == 3 * (weighted.best_epoch_ + 1)
    assert weighted.score(x, y) > 0.7  # always the largest class: 0.6


def test_looks_are_spread_over_all_stages_and_the_best_one_predicts() -> None:
    x, y = make_blobs(150, n_features=2, centers=None, cluster_std=6.0, random_state=1)
    model = quick(boosting(max_iter=50, learning_rate=0.5), "erm", epochs=5, select="average", threshold="off")
    model.fit(x, y)
    assert model.stages_ == 10 * (model.best_epoch_ + 1) < 50
    assert model.model_.n_iter_ == 50
    held_out = np.setdiff1d(np.arange(len(y)), trained_on(y))
    assert model.score(x[held_out], y[held_out]) == model.validation_rates_["average"]
    stages = list(model.model_.staged_predict_proba(x))
    np.testing.assert_allclose(model.predict_proba(x), stages[model.stages_ - 1], atol=1e-12)
    assert not np.allclose(model.predict_proba(x), stages[-1], atol=1e-3)
    assert quick(boosting(max_iter=3), "erm", select="last").fit(x, y).best_epoch_ == 2  # no more looks than stages


def test_a_pipeline_that_ends_in_boosting_has_its_stages(three: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = three
    alone = quick(boosting(random_state=0), settings=FIXED, epochs=5).fit(x, y)
    piped = quick(make_pipeline(StandardScaler(with_std=False), boosting(random_state=0)), epochs=5).fit(x - 1, y)
    assert piped.stages_ == alone.stages_
    assert np.array_equal(piped.predict(x - 1), alone.predict(x))


def test_the_method_weighs_the_rows_of_the_estimator(three: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = three
    model = quick(LogisticRegression(), threshold="off").fit(x, y)
    rows = ~np.isnan(model.weights_)
    assert len(set(model.uncertainty_[rows])) == 3  # wrong in none, one or both of two repeats
    own = LogisticRegression().fit(x[rows], y[rows], sample_weight=model.weights_[rows])
    np.testing.assert_allclose(model.predict_proba(x), own.predict_proba(x), rtol=0, atol=1e-12)
    assert model.stages_ == 1
    assert model.choices_["mixing"]["words"].startswith("the weights of examples are used")


def test_what_is_left_open_is_decided_on_held_out_rows(three: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = three
    model = UMIXClassifier(estimator=GaussianNB(), settings={"pool": "example"}).fit(x, y)
    assert {"pool", "length", "reason", "candidates"} <= set(model.choices_)
    assert model.choices_["length"] in (2, 5)  # of at most 5 repeats
    staged = UMIXClassifier(estimator=boosting(max_iter=2), settings={"pool": "cell"}, epochs=2).fit(x[:90], y[:90])
    assert {"length", "reason", "candidates"} <= set(staged.choices_)


def test_the_given_estimator_is_not_touched_and_its_options_are_options_of_the_classifier(
    three: tuple[np.ndarray, np.ndarray],
) -> None:
    given = boosting()
    model = quick(given, epochs=2).fit(*three)
    assert not hasattr(given, "classes_")
    assert given.random_state is None
    assert model.get_params()["estimator__max_iter"] == 10
    copy = clone(model).set_params(estimator__max_iter=2)
    assert given.max_iter == 10
    assert copy.fit(*three).model_.n_iter_ == 2


def test_one_random_state_is_one_result_unless_the_estimator_has_its_own(three: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = three
    first, again, other = (
        plain(RandomForestClassifier(5)).set_params(random_state=seed).fit(x, y).model_ for seed in (1, 1, 2)
    )
    assert first.random_state == again.random_state != other.random_state
    assert np.array_equal(first.predict_proba(x), again.predict_proba(x))
    own = plain(make_pipeline(RandomForestClassifier(5, random_state=7))).fit(x, y)
    assert own.model_[-1].random_state == 7
    assert plain(make_pipeline(RandomForestClassifier(5))).fit(x, y).model_[-1].random_state is not None


def test_a_fitted_classifier_keeps_no_rows_and_its_pickle_predicts_alike(three: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = np.repeat(three[0], 20, axis=1), three[1]
    model = quick(GaussianNB()).fit(x, y)
    stored = pickle.dumps(model)
    assert len(stored) < x.nbytes / 4
    assert np.array_equal(pickle.loads(stored).predict_proba(x), model.predict_proba(x))


def test_frames_with_texts_and_categories_reach_the_estimator_as_they_are(
    people: tuple[pandas.DataFrame, np.ndarray],
) -> None:
    frame, y = people
    categories = frame.assign(town=frame["town"].astype("category"))
    model = quick(boosting(max_iter=30, categorical_features="from_dtype"), epochs=6).fit(categories, y)
    assert model.model_.is_categorical_.tolist() == [True, True, False]
    assert model.feature_names_in_.tolist() == ["town", "kind", "age"]
    assert model.score(categories, y) > 0.9
    with pytest.raises(ValueError, match="feature names"):
        model.predict(categories.rename(columns={"age": "years"}))
    encoder = make_column_transformer((OneHotEncoder(), ["town", "kind"]), remainder="drop", sparse_threshold=1.0)
    piped = quick(make_pipeline(encoder, LogisticRegression())).fit(frame, y)
    assert sparse.issparse(piped.model_[0].transform(frame))
    assert set(piped.predict(frame)) <= {"no", "yes"}


@pytest.mark.system
def test_catboost_takes_names_of_columns_that_hold_texts(people: tuple[pandas.DataFrame, np.ndarray]) -> None:
    """Its lists of options are not those that were given, so scikit-learn's clone refuses it."""
    catboost = pytest.importorskip("catboost")
    options = {"verbose": False, "allow_writing_files": False, "thread_count": 1, "iterations": 6, "random_state": 0}
    estimator = catboost.CatBoostClassifier(cat_features=["town", "kind"], **options)
    frame, y = people
    rows = trained_on(y)
    model = plain(estimator).fit(frame, y)
    np.testing.assert_allclose(
        model.predict_proba(frame), estimator.fit(frame.iloc[rows], y[rows]).predict_proba(frame), atol=1e-12
    )
    assert model.model_ is not estimator


def test_sparse_matrices_lists_of_texts_and_polars_frames_are_rows_too(three: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = three
    dense = plain(LogisticRegression()).fit(x, y).predict(x)
    for rows in (sparse.csr_array(x), sparse.coo_matrix(x), polars.DataFrame(x), x.tolist()):
        assert np.array_equal(plain(LogisticRegression()).fit(rows, y).predict(rows), dense)
    texts = [f"{label} tree number {place % 7}" for place, label in enumerate(y)]
    assert plain(make_pipeline(CountVectorizer(), LogisticRegression())).fit(texts, y).score(texts, y) == 1


def test_it_is_searched_over_the_options_of_its_estimator(three: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = three
    grid = {"estimator__learning_rate": [1e-9, 0.3]}
    search = GridSearchCV(
        quick(boosting(max_iter=3), epochs=1, settings={**FIXED, "length": 1}), grid, cv=2, error_score="raise"
    ).fit(x, y)
    assert search.best_params_ == {"estimator__learning_rate": 0.3}
    assert search.best_estimator_.model_.learning_rate == 0.3


def test_groups_select_are_reported_and_train_where_the_method_says_so(three: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = three
    side = np.where(x[:, 0] > 0.8, "right", "left")
    model = quick(boosting(), epochs=5).fit(x, y, groups=side)
    assert model.validation_rates_["worst"] == min(model.validation_rates_["groups"].values())
    grouped = quick(LogisticRegression(), "reweight", settings={"by": "group"}, threshold="off").fit(x, y, groups=side)
    rows = ~np.isnan(grouped.weights_)
    cells = np.char.add(y.astype(str), side)[rows]
    totals = [grouped.weights_[rows][cells == cell].sum() for cell in np.unique(cells)]
    np.testing.assert_allclose(totals, totals[0], rtol=1e-5)


@pytest.mark.filterwarnings("ignore:.*logistic regressions did not converge")
def test_dfr_weighs_the_stages_of_the_estimator_anew(three: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = three
    model = quick(boosting(), "dfr", settings={"penalty": "l2", "repeats": 2}, threshold="off", epochs=5)
    model.fit(x, y, groups=["all"] * len(y))
    assert not np.allclose(model.predict_proba(x), model.model_.predict_proba(x), atol=0.01)
    assert model.score(x, y) > 0.6


def test_weights_of_rows_are_taken(three: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = three
    x = x + np.random.default_rng(0).normal(size=x.shape)
    heavy = np.where(y == "ash", 20.0, 1.0)
    model, equal = plain(LogisticRegression()).fit(x, y, sample_weight=heavy), plain(LogisticRegression()).fit(x, y)
    assert model.predict_proba(x)[:, 0].mean() > equal.predict_proba(x)[:, 0].mean() + 0.1
    there = (np.arange(len(y)) % 3 > 0).astype(float)
    some = quick(GaussianNB()).fit(x, y, sample_weight=there)
    gone = quick(GaussianNB()).fit(x[there > 0], y[there > 0])
    assert np.array_equal(some.predict_proba(x), gone.predict_proba(x))


@pytest.mark.parametrize("estimator", [boosting(min_samples_leaf=1), LogisticRegression()])
def test_ten_rows_are_enough(estimator: Any) -> None:
    x = np.arange(10.0)[:, None]
    model = UMIXClassifier(estimator=estimator, settings={"pool": "example"}, epochs=2).fit(x, x[:, 0] > 4)
    assert model.predict(x).dtype == bool
    assert len(model.weights_) == 10


class NoWeights(ClassifierMixin, BaseEstimator):
    def fit(self, x: Any, y: Any) -> "NoWeights":
        return self

    def predict_proba(self, x: Any) -> Any: ...


class NoParameters:
    def fit(self, x: Any, y: Any, sample_weight: Any = None) -> None: ...

    def predict_proba(self, x: Any) -> Any: ...


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (NoWeights(), r"^estimator must be an estimator that takes sample_weight in fit, but NoWeights does not"),
        (
            make_pipeline(StandardScaler(), KNeighborsClassifier()),
            r"sample_weight in fit, but KNeighborsClassifier does",
        ),
        (
            LinearSVC(),
            r"^estimator must be an estimator with fit and predict_proba, but LinearSVC has no predict_proba",
        ),
        (GaussianNB, r"^estimator must be an object, got the class GaussianNB; write GaussianNB\(\)\.$"),
        (NoParameters(), r"^estimator must have get_params, so that it can be copied, but NoParameters has none"),
    ],
    ids=["no weights", "no weights in the last step", "no probabilities", "a class", "no parameters"],
)
def test_what_is_no_such_estimator_is_refused_in_a_sentence(
    estimator: Any, message: str, three: tuple[np.ndarray, np.ndarray]
) -> None:
    with pytest.raises(UserError, match=message):
        quick(estimator).fit(*three)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"method": "group_dro"},
            r"^method='group_dro' must train a net, .* choose one of .*erm, umix, .*, or leave estimator",
        ),
        ({"method": "mixup"}, r"^method='mixup' must train a net"),
        (
            {"method": "reweight", "settings": {"by": "group", "groups_from": "few"}},
            r"^groups_from='few' must be used with a net",
        ),
        ({"lr": 0.1}, r"^UMIXClassifier\.lr must be left out where an estimator is given, got 0\.1: only nets have it"),
        (
            {"settings": {"sigma": 0.5}},
            r"^settings must leave out 'sigma': an estimator is fitted to rows as they are",
        ),
        ({"epochs": 0}, r"fit\.epochs must be a whole number in \[1, inf\), got 0\."),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, dict) else "",
)
def test_what_only_nets_can_do_is_refused_in_a_sentence(
    changes: dict[str, Any], message: str, three: tuple[np.ndarray, np.ndarray]
) -> None:
    x, y = three
    with pytest.raises(UserError, match=message):
        UMIXClassifier(estimator=GaussianNB(), **changes).fit(x, y, groups=x[:, 0] > 0)
