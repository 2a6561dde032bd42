"""The estimator keeps scikit-learn's contract, is a deterministic function of its input, and does what umix does."""

import contextlib
import inspect
import pickle
import re
import unittest
from collections.abc import Callable
from typing import Any

import numpy as np
import polars
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from umix import UMIXClassifier, UserError
from umix.adapters.sklearn.classifier import PARAMETERS
from umix.bench.spec.presets import preset
from umix.core.rates import worst
from umix.data.benchmarks.four_moons import FourMoons
from umix.data.task import Task
from umix.methods.umix import UMIX

# What a fit says of its few rows and epochs is no matter here.
pytestmark = pytest.mark.filterwarnings("ignore:The selected model predicts", "ignore:The first model got")

QUICK: dict[str, Any] = {"epochs": 4, "lr": 0.05, "batch_size": 16, "net_options": {"hidden": [16]}}
FIXED: dict[str, Any] = {"eta": 3, "pool": "example", "start": 0, "length": 2}


def quick(method: str = "umix", **changes: Any) -> UMIXClassifier:
    settings = {"settings": FIXED} if method == "umix" else {}
    return UMIXClassifier(method, **{**QUICK, **settings, **changes})


@pytest.fixture(scope="module")
def blobs() -> tuple[np.ndarray, np.ndarray]:
    x, y = make_blobs([60, 40, 30], n_features=3, centers=None, random_state=0)
    return x, np.array(["oak", "elm", "ash"])[y]


@pytest.fixture(scope="module")
def rare_moons() -> Task:
    return FourMoons(sizes=(400, 20, 20, 400)).load()


def not_copies(estimator: UMIXClassifier) -> dict[str, str]:
    reason = "a row of weight 2 has twice the loss, but two rows are two visits in other batches, of which one may be held out"
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}


@parametrize_with_checks([quick(threshold="off")], expected_failed_checks=not_copies)
def test_scikit_learns_contract_is_kept(estimator: UMIXClassifier, check: Callable[[UMIXClassifier], None]) -> None:
    with contextlib.suppress(unittest.SkipTest):  # what scikit-learn checks only where the array API is switched on
        check(estimator)


def test_a_chosen_threshold_decides_labels_and_leaves_probabilities_alone() -> None:
    """As in scikit-learn's TunedThresholdClassifierCV, the label need not be the most probable one."""
    x, y = make_blobs([400, 40], n_features=2, centers=None, cluster_std=6.0, random_state=1)
    chosen, plain = (quick("erm", threshold=threshold).fit(x, y) for threshold in ("tuned", "off"))
    assert chosen.biases_.any()
    assert not plain.biases_.any()
    assert min(chosen.validation_rates_["classes"].values()) > min(plain.validation_rates_["classes"].values())
    held_out = np.isin(np.arange(len(y)), np.flatnonzero(np.isnan(quick().fit(x, y).weights_)))
    assert chosen.score(x[held_out], y[held_out]) == chosen.validation_rates_["average"]
    assert np.array_equal(chosen.predict(x), (chosen.decision_function(x) > 0).astype(int))
    odds = np.diff(np.log(chosen.predict_proba(x)), axis=1)[:, 0]
    np.testing.assert_allclose(chosen.decision_function(x) - odds, chosen.biases_[1] - chosen.biases_[0], atol=1e-6)


def test_predictions_are_those_of_the_threshold_on_calibrated_probabilities() -> None:
    x, y = make_blobs([900, 150], n_features=2, centers=None, cluster_std=6.0, random_state=1)
    for threshold in ("tuned", "off"):
        model, raw = (
            quick("reweight", threshold=threshold, calibrate=calibrate).fit(x, y) for calibrate in (True, False)
        )
        assert np.array_equal(model.predict(x), raw.predict(x))
        assert np.array_equal(model.predict(x), (model.predict_proba(x)[:, 1] > model.threshold_).astype(int))
        assert np.array_equal(raw.predict(x), (raw.predict_proba(x)[:, 1] > raw.threshold_).astype(int))
        assert np.array_equal(model.predict_proba(x)[:, 1].argsort(), raw.predict_proba(x)[:, 1].argsort())
        held_out = np.isnan(model.weights_)
        assert model.predict_proba(x)[held_out, 1].mean() == pytest.approx(y[held_out].mean(), abs=0.01)
        assert abs(raw.predict_proba(x)[held_out, 1].mean() - y[held_out].mean()) > 0.1
        assert (raw.calibration_.scale, raw.calibration_.biases) == (1.0, (0.0, 0.0))


def test_defaults_are_those_of_the_preset_for_tables() -> None:
    usual = preset("table", "default")
    parameters = {name: p.default for name, p in inspect.signature(UMIXClassifier).parameters.items()}
    assert {name: parameters[name] for name in ("lr", "weight_decay", "epochs")} == {
        name: usual["fit"][name] for name in ("lr", "weight_decay", "epochs")
    }
    assert parameters["net"] == usual["net"]["name"]
    assert usual["umix"]["eta"] == usual["umix"]["pool"] == usual["umix"]["length"] == "auto"


@pytest.mark.parametrize("estimator", [None, GaussianNB()])
def test_every_parameter_and_fitted_attribute_is_documented(
    estimator: Any, blobs: tuple[np.ndarray, np.ndarray]
) -> None:
    frame = polars.DataFrame(blobs[0], schema=["a", "b", "c"])
    model = UMIXClassifier("reweight", estimator=estimator, epochs=1).fit(frame, blobs[1])
    parameters, attributes = (
        (UMIXClassifier.__doc__ or "")
        .split("    Parameters\n    ----------\n")[1]
        .split("    Attributes\n    ----------\n")
    )
    assert re.findall(r"^    (\w+) : ", parameters, re.M) == list(inspect.signature(UMIXClassifier).parameters)
    fitted = {name for name in vars(model) if name.endswith("_")}
    assert fitted <= set(re.findall(r"^    (\w+) : ", attributes, re.M))


def test_what_is_left_open_is_decided_and_said(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    model = quick(settings=None, epochs=3).fit(*blobs)
    assert {"eta", "pool", "length", "reason"} <= set(model.choices_)


def test_batches_are_smaller_where_rows_are_few() -> None:
    """250 rows, of which 200 are trained on: as good as batches of 32, and unlike batches of 64."""
    x, y = make_blobs(250, random_state=0)
    auto, same, other = (quick(batch_size=size).fit(x, y).predict_proba(x) for size in ("auto", 32, 64))
    assert np.array_equal(auto, same)
    assert not np.array_equal(auto, other)


def test_it_beats_chance_and_labels_come_back_as_they_were_given(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = blobs
    model = quick().fit(x, y)
    assert model.classes_.tolist() == ["ash", "elm", "oak"]
    assert model.score(x, y) > 0.85
    assert set(model.predict(x)) <= {"ash", "elm", "oak"}
    assert model.decision_function(x).shape == model.predict_proba(x).shape == (130, 3)


def test_umix_lifts_the_worst_group_of_held_out_rows_without_groups() -> None:
    splits = FourMoons().load().splits
    train, test, member = splits["train"], splits["test"], splits["test"].member.numpy().astype(int)
    rates = {}
    for method, settings in (("erm", None), ("umix", {"eta": 20, "pool": "example", "length": 5})):
        model = UMIXClassifier(method, settings=settings, lr=0.01, epochs=15, threshold="off")
        model.fit(train.x.numpy(), train.y.numpy())
        hit = model.predict(test.x.numpy()) == test.y.numpy()
        rates[method] = worst(hit.astype(int) @ member, member.sum(axis=0))
    assert rates["umix"] > rates["erm"] + 0.1


def test_the_net_has_the_weights_of_the_selected_epoch(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    """Rates on held-out rows, counted anew with the finished estimator, are those that selected the epoch."""
    x, y = blobs
    model = quick(epochs=8, select="average", lr=0.3, random_state=3).fit(x, y)
    held_out = np.isnan(model.weights_)
    assert model.best_epoch_ < 7  # else the last weights would do
    assert model.score(x[held_out], y[held_out]) == model.validation_rates_["average"]
    last = quick(epochs=8, select="last", lr=0.3, random_state=3).fit(x, y)
    assert last.best_epoch_ == 7
    assert not np.array_equal(last.predict_proba(x), model.predict_proba(x))


def test_uncertainty_and_weights_stand_at_the_rows_they_belong_to(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = blobs
    model = quick(settings={**FIXED, "eta": 7, "c": 2, "normalize": False}).fit(x, y)
    known = ~np.isnan(model.uncertainty_)
    assert known.sum() == sum(round(0.8 * n) for n in (60, 40, 30))
    assert np.allclose(model.weights_[known], 7 * model.uncertainty_[known] + 2)
    assert np.isnan(model.weights_[~known]).all()
    assert quick("erm").fit(x, y).weights_ is None


def test_every_class_and_group_is_divided_alike(rare_moons: Task) -> None:
    train = rare_moons.splits["train"]
    side = np.where(train.attribute.numpy() == 0, "left", "right")
    model = quick(val_share=0.25).fit(train.x.numpy(), train.y.numpy(), groups=side)
    held_out = np.isnan(model.weights_)
    assert [int(held_out[train.group.numpy() == g].sum()) for g in range(4)] == [100, 5, 5, 100]
    assert list(model.validation_rates_["groups"]) == ["0, left", "0, right", "1, left", "1, right"]
    rates = model.validation_rates_["groups"]
    assert model.validation_rates_["worst"] == min(rates["0, left"], rates["1, right"])  # the others have 5 rows


def test_groups_select_but_do_not_train(rare_moons: Task) -> None:
    """One group for all: the same rows are held out as without groups, and the last epoch has the same weights."""
    train = rare_moons.splits["train"]
    x, y = train.x.numpy(), train.y.numpy()
    without = quick(select="last").fit(x, y)
    grouped = quick(select="last").fit(x, y, groups=["all"] * len(y))
    assert np.array_equal(without.predict_proba(x), grouped.predict_proba(x))
    assert without.validation_rates_["worst"] is None
    assert without.validation_rates_["groups"] == {}


def test_a_method_that_trains_with_groups_takes_them(rare_moons: Task) -> None:
    train = rare_moons.splits["train"]
    x, y, side = train.x.numpy(), train.y.numpy(), train.attribute.numpy().astype(object)
    assert quick("group_dro").fit(x, y, groups=side).score(x, y) > 0.8
    with pytest.raises(UserError, match=r"method='group_dro' trains with groups, but none are given"):
        quick("group_dro").fit(x, y)


def test_a_net_with_a_companion_predicts_without_it(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    model = quick("lff").fit(*blobs)
    assert model.net_.companion is None
    assert model.score(*blobs) > 0.6


def test_rows_of_weight_zero_are_as_good_as_gone(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = blobs
    there = np.arange(len(y)) % 3 > 0
    with_zeros = quick().fit(x, y, sample_weight=there.astype(float))
    without = quick().fit(x[there], y[there])
    assert np.array_equal(with_zeros.predict_proba(x), without.predict_proba(x))
    assert np.isnan(with_zeros.uncertainty_[~there]).all()


def test_equal_weights_are_no_weights_and_heavy_rows_count_more(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = blobs
    x = x + np.random.default_rng(0).normal(size=x.shape) * 4  # so that there is something to trade
    plain, equal = quick("erm").fit(x, y), quick("erm").fit(x, y, sample_weight=np.full(len(y), 2.5))
    heavy = quick("erm").fit(x, y, sample_weight=np.where(y == "ash", 50.0, 1.0))
    assert np.array_equal(plain.predict_proba(x), equal.predict_proba(x))
    assert heavy.predict_proba(x)[:, 0].mean() > plain.predict_proba(x)[:, 0].mean() + 0.1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "umx", "settings": None}, r"Unknown method 'umx'; did you mean 'umix'\?"),
        ({"settings": {"etaa": 3}}, r"Unknown setting of umix 'etaa'; did you mean 'eta'\?"),
        (
            {"settings": ["eta"]},
            r"UMIXClassifier\.settings must be a dict of names and values, or None, got \['eta'\]\.",
        ),
        ({"settings": {"sigma": 50}}, r"umix\.sigma must be a number in \[0, 1\], got 50\."),
        ({"net": "mlpp", "net_options": None}, r"Unknown net 'mlpp'; did you mean 'mlp'\?"),
        ({"net_options": {"hiden": [3]}}, r"Unknown setting of net 'hiden'; did you mean 'hidden'\?"),
        ({"epochs": 0}, r"fit\.epochs must be a whole number in \[1, inf\), got 0\."),
        ({"val_share": 1.0}, r"val_share must be a number in \(0, 1\), got 1\.0\."),
        (
            {"random_state": -1},
            r"random_state must be None, a whole number in \[0, 4294967296\) or .*RandomState, got -1\.",
        ),
        ({"select": "wurst"}, r"Unknown selection rule 'wurst'; did you mean 'worst'\?"),
        ({"threshold": "coin"}, "Unknown threshold 'coin'"),
        (
            {"eta": 3, "settings": {"eta": 4}},
            r"^eta must be given once, got eta=3 and settings=\{'eta': 4\}; leave one out\.$",
        ),
        (
            {"method": "jtt", "settings": None, "eta": 3},
            r"^eta=3 must be left out for method='jtt', which has no such setting; a search over",
        ),
        ({"select": "worst"}, r"select='worst' must know the groups, but none are given"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_wrong_parameters_get_one_sentence(
    changes: dict[str, Any], message: str, blobs: tuple[np.ndarray, np.ndarray]
) -> None:
    with pytest.raises(UserError, match=message):
        quick(**changes).fit(*blobs)


def test_wrong_data_get_one_sentence(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = blobs
    with pytest.raises(UserError, match=r"sample_weight must be left out for method='cvar_dro': .* erm, umix"):
        quick("cvar_dro").fit(x, y, sample_weight=np.ones(len(y)))
    with pytest.raises(UserError, match=r"'groups' must have a value for each of the 130 rows of the inputs, got 2"):
        quick().fit(x, y, groups=["a", "b"])
    with pytest.raises(UserError, match=r"Some class must have two rows"):
        quick().fit(x[:2], ["a", "b"])
    with pytest.raises(UserError, match=r"select='uncertainty_quintile' must have a score on held-out rows"):
        quick("erm", select="uncertainty_quintile").fit(x, y)


def test_one_random_state_is_one_result_and_the_global_generators_rest(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = blobs
    torch_before, numpy_before = torch.get_rng_state(), str(np.random.get_state())
    first, second, other = (quick(random_state=seed).fit(x, y).predict_proba(x) for seed in (1, 1, 2))
    assert torch.equal(torch_before, torch.get_rng_state())
    assert numpy_before == str(np.random.get_state())
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_clones_and_pickles_predict_alike(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = blobs
    model = quick().fit(x, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(model.predict_proba(x), again.predict_proba(x))
    assert np.array_equal(model.predict_proba(x), clone(model).fit(x, y).predict_proba(x))


def test_large_offsets_do_not_hide_small_differences(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    """Seconds since 1970 differ in digits that single precision does not have."""
    x, y = blobs
    assert np.allclose(
        quick().fit(x + 1.7e9, y).predict_proba(x + 1.7e9), quick().fit(x, y).predict_proba(x), atol=1e-2
    )


def test_every_parameter_of_the_method_is_explicit_optional_and_one_of_umix() -> None:
    given = inspect.signature(UMIXClassifier).parameters
    assert {given[name].default for name in PARAMETERS} == {None}
    assert set(PARAMETERS) <= set(UMIX.model_fields)


def test_a_parameter_and_a_setting_are_the_same_thing(
    small: Callable[..., UMIXClassifier], rows: tuple[np.ndarray, ...]
) -> None:
    x, y, _ = rows
    fixed = {"eta": 5, "pool": "example", "length": 2, "sigma": 1, "per_example": True}
    by_name = small(**fixed).fit(x, y)
    by_settings = UMIXClassifier(**{**small().get_params(), **dict.fromkeys(PARAMETERS), "settings": fixed}).fit(x, y)
    assert np.array_equal(by_name.predict_proba(x), by_settings.predict_proba(x))
    assert np.array_equal(clone(by_name).fit(x, y).weights_, by_name.weights_, equal_nan=True)
    twice = small(**fixed, settings={"eta": 5}).fit(x, y)  # the same value is no contradiction
    assert np.array_equal(twice.predict_proba(x), by_name.predict_proba(x))
    assert not np.array_equal(small(eta=0).fit(x, y).predict_proba(x), by_name.predict_proba(x))


def test_searches_set_them(small: Callable[..., UMIXClassifier], rows: tuple[np.ndarray, ...]) -> None:
    x, y, _ = rows
    search = GridSearchCV(small(), {"eta": [1, 10]}, cv=2, error_score="raise").fit(x, y)
    known = ~np.isnan(search.best_estimator_.weights_)
    u, w = search.best_estimator_.uncertainty_[known], search.best_estimator_.weights_[known]
    np.testing.assert_allclose(
        w, (eta := search.best_params_["eta"]) * u / (1 + eta * u.mean()) + 1 / (1 + eta * u.mean()), 1e-5
    )
    draws = {"sigma": np.array([0.0, 0.5]), "length": np.arange(1, 3), "per_example": np.array([True, False])}
    RandomizedSearchCV(small(), draws, n_iter=2, cv=2, error_score="raise", random_state=0).fit(x, y)
