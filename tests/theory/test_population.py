"""Exact risks of a population against scipy's quadrature and against many draws."""

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from umix.theory.bounds import rank
from umix.theory.population import Population, expected_partition, expected_variance


@pytest.fixture
def population() -> Population:
    return Population.drawn(d=12, r=4, rng=np.random.default_rng(0))


@pytest.mark.parametrize("scale", [1e-3, 0.1, 1.0, 4.0, 30.0])
def test_expectations_under_a_normal_law_are_integrals(scale: float) -> None:
    def integral(function: object) -> float:
        ends = [-12 * scale, -min(5, scale), 0, min(5, scale), 12 * scale]
        return sum(
            quad(lambda u: norm.pdf(u, scale=scale) * function(u), low, high)[0]
            for low, high in itertools.pairwise(ends)
        )

    assert expected_partition(scale) == pytest.approx(integral(lambda u: np.logaddexp(0, u)), rel=1e-8)
    assert expected_variance(scale) == pytest.approx(integral(lambda u: expit(u) * expit(-u)), rel=1e-8)


def test_the_risk_is_the_mean_weighted_loss_of_many_draws(population: Population) -> None:
    rng = np.random.default_rng(1)
    theta, w = rng.standard_normal(12), np.array([1.0, 2.0, 4.0])
    x, y, group = population.draw(200_000, rng)
    z = x @ theta
    losses = w[group] * (np.logaddexp(0, z) - y * z)
    assert abs(population.risk(theta, w) - losses.mean()) < 4 * losses.std() / np.sqrt(len(losses))


def test_the_moments_are_those_of_many_draws(population: Population) -> None:
    x, _, group = population.draw(200_000, np.random.default_rng(2))
    w = np.array([1.0, 2.0, 4.0])
    weighted = (w[group, None] * x).T @ x / len(x)
    np.testing.assert_allclose(weighted, population.moments(w).weighted(), atol=0.03)


def test_the_data_have_the_intrinsic_rank_and_their_groups_do_not_share_a_covariance(population: Population) -> None:
    moments = population.moments(np.ones(3))
    assert rank(moments.plain()) == 4
    assert [rank(sigma) for sigma in moments.sigma] == [4, 2, 2]


def test_populations_of_every_dimension_agree_in_all_but_the_frame() -> None:
    few, many = (Population.drawn(d=d, r=3, rng=np.random.default_rng(5)) for d in (3, 40))
    np.testing.assert_array_equal(few.truth, many.truth)
    np.testing.assert_allclose(many.basis.T @ many.basis, np.eye(3), atol=1e-12)
