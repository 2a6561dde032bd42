"""The bound's parts: hand computations, conditions drawn at random, complexities by enumeration."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from umix.errors import UserError
from umix.theory.bounds import ellipsoid_complexity, generalisation_bound, radius, tight_radius, weighted_rho
from umix.theory.covariance import group_moments

GOOD = {"dimension": 4.0, "n": 100, "gamma": 8.0, "rho": 0.5, "lipschitz": 1.0, "largest": 3.0, "delta": 0.05}


def test_the_bound_is_the_sum_of_its_two_terms() -> None:
    bound = generalisation_bound(**GOOD)
    assert bound.complexity == pytest.approx(2 * 1 * 4 * 0.2)  # (8/0.5)^½ = 4, √(4/100) = 0.2
    assert bound.deviation == pytest.approx(3 * math.sqrt(math.log(40) / 200))
    assert bound.total == bound.complexity + bound.deviation


def test_the_two_bounds_differ_by_the_root_of_dimension_over_rank() -> None:
    ours, erm = (generalisation_bound(**{**GOOD, "dimension": size}) for size in (4, 100))
    assert erm.complexity == pytest.approx(5 * ours.complexity)
    assert erm.deviation == ours.deviation


@given(st.floats(1e-4, 1e4), st.floats(1e-3, 0.5))
def test_the_tight_radius_solves_the_conditions_and_the_printed_one_is_no_smaller(gamma: float, rho: float) -> None:
    # The largest t with a·t ≤ γ for the smallest a that a² ≥ ρ min{1, t} allows.
    t = tight_radius(gamma, rho) ** 2
    assert math.sqrt(rho * min(1, t)) * t == pytest.approx(gamma)
    assert radius(gamma, rho) >= tight_radius(gamma, rho) * (1 - 1e-12)


@given(st.integers(0, 10**6))
def test_the_weighted_rho_follows_from_the_unweighted_assumption(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, group, w = rng.standard_normal((40, 3)), np.arange(40) % 2, rng.uniform(0.2, 5, 2)
    theta = rng.standard_normal(3) * rng.choice([0.1, 1, 5])
    variance = 1 / (2 + 2 * np.cosh(x @ theta))
    unweighted = min(0.5, variance.mean() ** 2 / min(1, np.mean((x @ theta) ** 2)))
    spread = theta @ group_moments(x, group, w).weighted() @ theta
    ours = np.mean(w[group] * variance) ** 2
    assert ours >= weighted_rho(unweighted, w) * min(1, spread) * (1 - 1e-12)


def test_the_ellipsoids_complexity_is_the_mean_over_all_signs_of_the_supremum() -> None:
    rng = np.random.default_rng(0)
    x, sigma = rng.standard_normal((6, 2)), np.array([[2.0, 0.5], [0.5, 1.0]])
    suprema = []
    for signs in itertools.product([-1, 1], repeat=6):
        direction = np.array(signs) @ x / 6
        found = minimize(
            lambda t, v=direction: -(t @ v),
            [0.1, 0.1],
            constraints={"type": "ineq", "fun": lambda t: 1.7**2 - t @ sigma @ t},
        )
        suprema.append(-found.fun)
    estimate = ellipsoid_complexity(x, sigma, length=1.7, draws=4000, rng=rng)
    assert abs(estimate.mean - np.mean(suprema)) < 4 * estimate.error + 1e-4


def test_the_complexity_stays_below_its_bound() -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((80, 3)) @ rng.standard_normal((3, 10))
    estimate = ellipsoid_complexity(x, x.T @ x / 80, length=1.0, draws=500, rng=rng)
    assert 0.5 * math.sqrt(3 / 80) < estimate.mean < math.sqrt(3 / 80)


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"rho": 0.7}, "rho=0.7"), ({"gamma": -1.0}, "gamma=-1"), ({"delta": 1.0}, "delta=1"), ({"n": 0}, "n=0")],
)
def test_constants_out_of_range_are_refused(changes: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        generalisation_bound(**{**GOOD, **changes})
