"""Calibration against scikit-learn, and what it must leave alone."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

from umix.core.calibration import Calibration, enough_examples, fitted_calibration
from umix.core.thresholds import calibrated_probabilities, candidate_biases, predicted_classes


def drawn(n: int, shares: list[float], *, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Logits that are too large and prefer the last class, and the labels."""
    rng, k = np.random.default_rng(seed), len(shares)
    y = rng.choice(k, size=n, p=shares)
    logits = 2.5 * (rng.normal(size=(n, k)) + np.eye(k)[y])
    logits[:, -1] += 1.5
    return logits.astype(np.float32), y


class Margin(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose decision is the difference of the two logits."""

    classes_ = np.array([0, 1])

    def fit(self, x, y):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def decision_function(self, x):
        return x[:, 1].astype(np.float64) - x[:, 0]

    def predict(self, x):
        return (self.decision_function(x) > 0).astype(int)


@pytest.mark.parametrize("shares", [[0.5, 0.5], [0.95, 0.05]])
def test_of_two_classes_it_is_scikit_learns_sigmoid_calibration_of_the_margin(shares):
    logits, y = drawn(700, shares)
    reference = CalibratedClassifierCV(FrozenEstimator(Margin()), method="sigmoid").fit(logits, y)
    calibration = fitted_calibration(logits, y)
    assert calibration is not None
    ours = calibrated_probabilities(torch.from_numpy(logits).double(), calibration)
    assert ours.numpy() == pytest.approx(reference.predict_proba(logits), abs=2e-4)


def test_of_several_classes_no_other_scale_and_biases_have_a_lower_smoothed_log_loss():
    logits, y = drawn(900, [0.6, 0.3, 0.1])
    sizes = np.bincount(y)
    target = np.where(np.eye(3)[y] == 1, (sizes[y] + 1)[:, None], 1) / (sizes[y] + 3)[:, None]
    assert target.sum(axis=1) == pytest.approx(1)

    def loss(free: NDArray[np.float64]) -> float:
        return float(-(target * log_softmax(free[0] * logits.astype(np.float64) + free[1:], axis=1)).sum() / len(y))

    calibration = fitted_calibration(logits, y)
    assert calibration is not None
    reference = minimize(loss, np.array([0.3, 0.5, 0.0, -0.5]), method="BFGS")
    assert loss(np.array([calibration.scale, *calibration.biases])) == pytest.approx(reference.fun, abs=1e-9)
    assert calibration.scale == pytest.approx(reference.x[0], abs=1e-4)
    assert calibration.biases == pytest.approx(reference.x[1:] - reference.x[1:].mean(), abs=1e-3)


@pytest.mark.parametrize("shares", [[0.8, 0.2], [0.5, 0.3, 0.2]])
def test_the_mean_probability_of_a_class_becomes_its_share(shares):
    logits, y = drawn(3000, shares)
    calibration = fitted_calibration(logits, y)
    assert calibration is not None
    share = np.bincount(y) / len(y)
    before = softmax(logits, axis=1).mean(axis=0)
    after = calibrated_probabilities(torch.from_numpy(logits), calibration).numpy().mean(axis=0)
    assert np.abs(before - share).max() > 0.05
    assert after == pytest.approx(share, abs=2e-3)  # smoothing of the labels is all that is left


def test_probabilities_that_are_calibrated_already_stay():
    rng = np.random.default_rng(0)
    margin = rng.normal(size=20_000)
    y = (rng.random(20_000) < 1 / (1 + np.exp(-margin))).astype(int)
    calibration = fitted_calibration(np.stack([np.zeros_like(margin), margin], axis=1), y)
    assert calibration is not None
    assert calibration.scale == pytest.approx(1, abs=0.05)
    assert calibration.biases == pytest.approx((0, 0), abs=0.03)


def test_of_two_classes_every_threshold_decides_as_before():
    logits, y = drawn(500, [0.9, 0.1])
    calibration, given = fitted_calibration(logits, y), torch.from_numpy(logits).double()
    assert calibration is not None
    p = calibrated_probabilities(given, calibration)[:, 1]
    for biases in candidate_biases(np.bincount(y)):
        expected = predicted_classes(given, torch.from_numpy(biases))
        assert ((p > calibration.threshold(biases)).long() == expected).all()


def test_of_several_classes_offsets_decide_as_the_biases_of_the_logits():
    logits, y = drawn(500, [0.5, 0.3, 0.2])
    calibration, given = fitted_calibration(logits, y), torch.from_numpy(logits).double()
    assert calibration is not None
    for biases in candidate_biases(np.bincount(y)):
        offsets = torch.from_numpy(calibration.log_offsets(biases))
        decided = (calibrated_probabilities(given, calibration).log() + offsets).argmax(dim=1)
        assert (decided == predicted_classes(given, torch.from_numpy(biases))).all()


def test_without_calibration_probabilities_are_the_softmax_bit_by_bit():
    logits = torch.from_numpy(drawn(50, [0.5, 0.5])[0])
    assert torch.equal(calibrated_probabilities(logits, Calibration.none(2)), logits.softmax(dim=1))
    assert Calibration.none(2).threshold([0.0, 1.0]) == pytest.approx(1 / (1 + np.e))


def test_what_was_before_calibration_can_be_computed_from_what_is_after():
    logits, y = drawn(300, [0.5, 0.3, 0.2])
    calibration = fitted_calibration(logits, y)
    assert calibration is not None
    after = calibrated_probabilities(torch.from_numpy(logits), calibration).numpy()
    assert calibration.uncalibrated(after) == pytest.approx(softmax(logits, axis=1), abs=1e-4)
    assert calibration.uncalibrated([[1.0, 0.0, 0.0]]).tolist() == [[1.0, 0.0, 0.0]]


def test_a_model_that_is_worse_than_chance_keeps_the_order_of_its_examples():
    logits, y = drawn(400, [0.5, 0.5])
    calibration = fitted_calibration(logits, 1 - y)
    assert calibration is not None
    assert calibration.scale > 0
    p = calibrated_probabilities(torch.from_numpy(logits).double(), calibration)[:, 1]
    assert (p.argsort() == torch.from_numpy(logits[:, 1].astype(float) - logits[:, 0]).argsort()).all()


def test_few_examples_and_logits_that_are_not_finite_calibrate_nothing():
    logits, y = drawn(99, [0.5, 0.5])
    assert fitted_calibration(logits, y) is None
    logits, y = drawn(200, [0.5, 0.5])
    logits[3, 0] = np.inf
    assert fitted_calibration(logits, y) is None
    assert fitted_calibration(np.zeros((200, 1)), np.zeros(200, dtype=int)) is None
    assert not enough_examples([500, 0])


def test_classes_that_are_told_apart_without_a_mistake_have_finite_probabilities():
    y = np.arange(200) % 2
    calibration = fitted_calibration(np.stack([-5.0 * y, 5.0 * y], axis=1), y)
    assert calibration is not None
    p = calibrated_probabilities(torch.tensor([[0.0, 0.0], [-5.0, 5.0]], dtype=torch.float64), calibration)
    assert p[1, 1].item() == pytest.approx(101 / 102, abs=1e-3)  # Platt's target
