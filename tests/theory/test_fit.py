"""Fits against scikit-learn and normal equations; mixed rows against the exact mixup loss."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from umix.errors import UserError
from umix.theory.fit import minimiser, mixed_rows
from umix.theory.glm import Gaussian, Logistic, Poisson
from umix.theory.mixing_law import MixingLaw
from umix.theory.predictor import Linear
from umix.theory.sample import Sample
from umix.theory.weighted_loss import mixup_loss, standard_loss


@pytest.fixture
def binary() -> Sample:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((80, 3))
    return Sample.of(x, Logistic().draw(x @ [2.0, -1.0, 0.0], rng), 1 + 3 * rng.random(80))


def test_the_logistic_fit_is_scikit_learns(binary: Sample) -> None:
    ridge = 0.02
    theirs = LogisticRegression(C=1 / (ridge * 80), fit_intercept=False, tol=1e-10, max_iter=10_000)
    theirs.fit(binary.x, binary.y, sample_weight=binary.w)
    np.testing.assert_allclose(minimiser(Logistic(), binary, ridge=ridge), theirs.coef_[0], atol=1e-4)


def test_the_gaussian_fit_solves_the_normal_equations(binary: Sample) -> None:
    gram = binary.x.T @ (binary.w[:, None] * binary.x) / 80 + 0.1 * np.eye(3)
    np.testing.assert_allclose(
        minimiser(Gaussian(), binary, ridge=0.1),
        np.linalg.solve(gram, binary.x.T @ (binary.w * binary.y) / 80),
        atol=1e-8,
    )


@pytest.mark.parametrize("model", [Logistic(), Poisson()])
def test_the_gradient_vanishes_at_the_fit(model: Logistic | Poisson, binary: Sample) -> None:
    theta = minimiser(model, binary, ridge=1e-3)
    gradient = binary.x.T @ (binary.w * (model.mean(binary.x @ theta) - binary.y)) / 80 + 1e-3 * theta
    assert np.max(np.abs(gradient)) < 1e-4


def test_a_separable_sample_has_a_finite_fit() -> None:
    x = np.array([[1.0], [2.0], [-1.0], [-3.0]])
    theta = minimiser(Logistic(), Sample.of(x, np.array([1.0, 1.0, 0.0, 0.0])), ridge=1e-3)
    assert 1 < theta[0] < 100


def test_the_loss_of_mixed_rows_estimates_the_mixup_loss(binary: Sample) -> None:
    law, f = MixingLaw(1.5, 2.5), Linear(np.array([1.0, -0.5, 0.3]))
    rows = mixed_rows(binary, law, partners=300, nodes=3, rng=np.random.default_rng(1))
    exact = mixup_loss(Logistic(), f, binary, law)
    added = exact - standard_loss(Logistic(), f, binary)
    assert standard_loss(Logistic(), f, rows) == pytest.approx(exact, abs=0.03 * abs(added))
    assert rows.w.mean() == pytest.approx(binary.w.mean())


def test_a_fit_without_a_ridge_is_refused(binary: Sample) -> None:
    with pytest.raises(UserError, match="ridge must be above 0, got 0"):
        minimiser(Logistic(), binary, ridge=0.0)
