"""Pipelines, routed groups and weights, thresholds and calibration of scikit-learn around the classifier."""

from collections.abc import Callable, Iterator

import numpy as np
import pandas
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, GroupKFold, TunedThresholdClassifierCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from umix import UMIXClassifier
from umix.adapters.sklearn import worst_group_accuracy, worst_group_scorer

pytestmark = pytest.mark.filterwarnings("ignore:The selected model predicts", "ignore:The first model got")

Made = Callable[..., UMIXClassifier]
Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize("form", ["pandas", "polars"])
def test_frames_of_set_output_are_as_good_as_arrays(
    form: str, small: Made, people: tuple[pandas.DataFrame, np.ndarray]
) -> None:
    frame, y = people
    encode = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["town", "kind"]),
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age"]),
    )
    arrays = make_pipeline(clone(encode), small("erm")).fit(frame, y)
    framed = make_pipeline(encode, small("erm")).set_output(transform=form).fit(frame, y)
    assert framed[-1].feature_names_in_[-1] == "pipeline__age"
    np.testing.assert_allclose(framed.predict_proba(frame), arrays.predict_proba(frame), atol=1e-6)


@pytest.mark.usefixtures("routing")
def test_groups_and_weights_are_routed_through_a_pipeline(small: Made, rows: Rows) -> None:
    x, y, side = rows
    weight = 1.0 + (np.arange(len(y)) % 4 == 0)
    model = small("erm").set_fit_request(groups=True, sample_weight=True)
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    routed = make_pipeline(scaler, model).fit(x, y, groups=side, sample_weight=weight)
    direct = small("erm").fit(StandardScaler().fit_transform(x), y, groups=side, sample_weight=weight)
    assert np.array_equal(routed.predict_proba(x), direct.predict_proba(StandardScaler().fit_transform(x)))
    assert list(routed[-1].validation_rates_["groups"]) == ["0, left", "0, right", "1, left", "1, right"]


@pytest.mark.usefixtures("routing")
def test_a_search_gives_every_fold_its_groups_and_chooses_by_the_worst(small: Made, rows: Rows) -> None:
    x, y, side = rows
    frame = pandas.DataFrame({"side": side, "even": np.arange(len(y)) % 2})
    model = small(lr=0.01).set_fit_request(groups=True)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), model),
        {"umixclassifier__eta": [0, 10]},
        scoring=worst_group_scorer(),
        cv=2,
        error_score="raise",
    ).fit(x, y, groups=frame)
    assert len(search.best_estimator_[-1].validation_rates_["groups"]) == 8
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.usefixtures("routing")
def test_cross_validation_gives_every_fold_its_groups_and_weights(small: Made, rows: Rows) -> None:
    x, y, side = rows
    weight = np.where(np.arange(len(y)) % 3 == 0, 0.0, 1.0)
    model = small().set_fit_request(groups=True, sample_weight=True).set_score_request(sample_weight=True)
    given = {"groups": side, "sample_weight": weight}
    found = cross_validate(
        model, x, y, cv=2, params=given, return_estimator=True, return_indices=True, error_score="raise"
    )
    for fitted, train in zip(found["estimator"], found["indices"]["train"], strict=True):
        assert np.isnan(fitted.weights_[weight[train] == 0]).all()
        assert len(fitted.validation_rates_["groups"]) == 4


def test_without_routing_a_step_of_a_pipeline_is_given_groups_by_its_name(small: Made, rows: Rows) -> None:
    x, y, side = rows
    model = make_pipeline(StandardScaler(), small("erm"))
    found = cross_validate(model, x, y, cv=2, params={"umixclassifier__groups": side}, return_estimator=True)
    assert [len(fitted[-1].validation_rates_["groups"]) for fitted in found["estimator"]] == [4, 4]


def test_a_tuned_threshold_is_one_of_the_probability_and_biases_take_no_part(small: Made, rows: Rows) -> None:
    x, y, _ = rows
    tuned = TunedThresholdClassifierCV(
        small("erm", threshold="tuned", random_state=1), cv=0.5, refit=False, random_state=0
    )
    tuned.set_params(estimator=small("erm", threshold="tuned").fit(x, y), cv="prefit").fit(x, y)
    said = tuned.estimator_.predict_proba(x)[:, 1] >= tuned.best_threshold_
    assert np.array_equal(tuned.predict(x), said.astype(int))
    plain = TunedThresholdClassifierCV(small("erm"), cv=2).fit(x, y)
    assert plain.score(x, y) > 0.7
    assert not plain.estimator_.biases_.any()


def test_calibrated_probabilities_decide_by_themselves(small: Made, rows: Rows) -> None:
    x, y, _ = rows
    model = CalibratedClassifierCV(small("erm"), cv=2).fit(x, y, sample_weight=np.ones(len(y)))
    assert np.array_equal(model.predict(x), model.predict_proba(x).argmax(axis=1))
    assert model.score(x, y) > 0.7
    assert abs(model.predict_proba(x)[:, 1].mean() - y.mean()) < 0.1


@pytest.mark.usefixtures("routing")
def test_groups_under_another_name_leave_groups_to_the_splitter(small: Made, rows: Rows) -> None:
    """scikit-learn's own alias: the model is given ``side`` as its groups, GroupKFold the patients as its groups."""
    x, y, side = rows
    patient = np.arange(len(y)) // 4
    model = small("erm").set_fit_request(groups="side")
    scorer = worst_group_scorer(min_group=1).set_score_request(groups="side")
    params = {"side": side, "groups": patient}
    found = cross_validate(
        model, x, y, scoring=scorer, cv=GroupKFold(3), params=params, return_estimator=True, return_indices=True
    )
    for train, test, score, fitted in zip(
        *found["indices"].values(), found["test_score"], found["estimator"], strict=True
    ):
        assert not set(patient[train]) & set(patient[test])
        alone = small("erm").fit(x[train], y[train], groups=side[train])
        assert np.array_equal(fitted.predict_proba(x), alone.predict_proba(x))
        assert score == worst_group_accuracy(y[test], alone.predict(x[test]), groups=side[test], min_group=1)
