"""The bound's parts: hand computations, conditions drawn at random, complexities by enumeration."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import check_grad, minimize

from umix.theory.bounds import (
    GroupMoments,
    _log_ratio,
    ellipsoid_complexity,
    generalisation_bound,
    inverse_root,
    rank,
    retentiveness,
    whitened_trace,
)
from umix.theory.glm import GAUSSIAN, LOGISTIC, POISSON

GOOD = {"dimension": 4.0, "n": 100, "gamma": 8.0, "rho": 0.5, "lipschitz": 1.0, "largest": 3.0, "delta": 0.05}


def test_the_bound_is_the_sum_of_its_two_terms() -> None:
    complexity, deviation = 2 * 1 * 4 * 0.2, 3 * math.sqrt(math.log(40) / 200)  # (8/0.5)^½ = 4, √(4/100) = 0.2
    assert generalisation_bound(**GOOD) == pytest.approx(complexity + deviation)
    assert generalisation_bound(**{**GOOD, "dimension": 100}) == pytest.approx(5 * complexity + deviation)


@given(st.floats(1e-4, 1e4), st.floats(1e-3, 0.5))
def test_the_radius_is_no_smaller_than_what_the_two_conditions_allow(gamma: float, rho: float) -> None:
    # The largest t with a·t ≤ γ for the smallest a that a² ≥ ρ min{1, t} allows.
    q = gamma / math.sqrt(rho)
    t = max(q, q ** (2 / 3))
    assert math.sqrt(rho * min(1, t)) * t == pytest.approx(gamma)
    bound = generalisation_bound(**{**GOOD, "dimension": 1, "n": 1, "largest": 0.0, "gamma": gamma, "rho": rho})
    assert bound / 2 >= math.sqrt(t) * (1 - 1e-12)


def test_the_ellipsoids_complexity_is_the_mean_over_all_signs_of_the_supremum() -> None:
    rng = np.random.default_rng(0)
    x, sigma = rng.standard_normal((6, 2)), np.array([[2.0, 0.5], [0.5, 1.0]])
    suprema = []
    for signs in itertools.product([-1, 1], repeat=6):
        direction = np.array(signs) @ x / 6
        optimum = minimize(
            lambda t, v=direction: -(t @ v),
            [0.1, 0.1],
            constraints={"type": "ineq", "fun": lambda t: 1 - t @ sigma @ t},
        )
        suprema.append(-optimum.fun)
    estimate = ellipsoid_complexity(x, sigma, draws=4000, rng=rng)
    assert abs(estimate.mean - np.mean(suprema)) < 4 * estimate.error + 1e-4


WEIGHTS = st.lists(st.floats(0.1, 10), min_size=3, max_size=3).map(np.array)


def moments(w: np.ndarray) -> GroupMoments:
    """Three groups in a subspace of dimension 3."""
    rng = np.random.default_rng(0)
    groups = rng.standard_normal((3, 20, 3)) @ rng.standard_normal((3, 6))
    return GroupMoments(np.full(3, 1 / 3), w, np.einsum("gid,gie->gde", groups, groups) / 20)


@given(WEIGHTS)
def test_weights_do_not_change_the_rank_and_bound_the_whitened_trace(w: np.ndarray) -> None:
    assert rank(moments(w).weighted()) == 3
    trace = whitened_trace(moments(w))
    assert 3 / w.max() * (1 - 1e-9) <= trace <= 3 / w.min() * (1 + 1e-9)


def test_the_rank_counts_what_exceeds_the_tolerance() -> None:
    assert rank(np.diag([1.0, 1e-3, 1e-9, 1e-11, 0.0])) == 3
    assert rank(np.zeros((3, 3))) == 0


def test_the_inverse_root_whitens_what_has_spread() -> None:
    sigma = moments(np.ones(3)).plain()
    root = inverse_root(sigma)
    np.testing.assert_allclose(root @ root, np.linalg.pinv(sigma, rcond=1e-10), rtol=1e-6, atol=1e-8)


def test_gaussian_and_centred_poisson_models_have_the_largest_rho() -> None:
    x = np.random.default_rng(0).standard_normal((50, 3))
    x -= x.mean(axis=0)
    for model in (GAUSSIAN, POISSON):  # A'' is 1, or its mean is at least exp(0) by Jensen
        assert retentiveness(model, x, np.ones(50), radius=2.0, shells=4) == 0.5


@pytest.mark.parametrize("length", [0.5, 1.0, 4.0])
def test_the_logistic_rho_of_two_points_is_known(length: float) -> None:
    x = np.array([[1.0, 0.0], [-1.0, 0.0]])
    variance = 1 / (2 + 2 * np.cosh(length))
    rho = retentiveness(LOGISTIC, x, np.ones(2), radius=length)
    assert rho == pytest.approx(min(0.5, variance**2 / min(1, length**2)))


def test_no_direction_of_a_fine_grid_is_worse_than_the_one_found() -> None:
    x = 0.4 + np.random.default_rng(2).standard_normal((40, 2)) * [2.0, 0.5]
    rho = retentiveness(LOGISTIC, x, np.ones(40), radius=2.0)
    angles = np.linspace(0, 2 * np.pi, 361)
    z = x @ (2 * np.stack([np.cos(angles), np.sin(angles)]))
    ratios = LOGISTIC.variance(z).mean(axis=0) ** 2 / np.minimum(1, (z**2).mean(axis=0))
    assert rho == pytest.approx(ratios.min(), rel=1e-3)


@pytest.mark.parametrize("length", [0.3, 3.0])
def test_the_gradient_of_the_search_is_right(length: float) -> None:
    rng = np.random.default_rng(5)
    args = (LOGISTIC, rng.standard_normal((20, 3)), 1 + rng.random(20), length)
    value = lambda u: _log_ratio(u, *args)[0]  # noqa: E731
    assert check_grad(value, lambda u: _log_ratio(u, *args)[1], np.array([0.4, -1.0, 0.7])) < 1e-6
