"""ρ-retentiveness where it is known, and against a fine grid of directions."""

import numpy as np
import pytest
from scipy.optimize import check_grad

from umix.errors import UserError
from umix.theory.glm import GLM, Gaussian, Logistic, Poisson
from umix.theory.retentive import _log_ratio, ratio, retentiveness

RNG = np.random.default_rng


def test_gaussian_and_centred_poisson_models_have_the_largest_rho() -> None:
    x = RNG(0).standard_normal((50, 3))
    x -= x.mean(axis=0)
    for model in (Gaussian(), Poisson()):  # A'' is 1, or its mean is at least exp(0) by Jensen
        assert retentiveness(model, x, radius=2.0, rng=RNG(1)).rho == 0.5


@pytest.mark.parametrize("radius", [0.5, 1.0, 4.0])
def test_the_logistic_rho_of_two_points_is_known(radius: float) -> None:
    x = np.array([[1.0, 0.0], [-1.0, 0.0]])
    variance = 1 / (2 + 2 * np.cosh(radius))
    found = retentiveness(Logistic(), x, radius=radius, rng=RNG(0))
    assert found.rho == pytest.approx(min(0.5, variance**2 / min(1, radius**2)))
    np.testing.assert_allclose(np.abs(found.v), [radius, 0], atol=1e-6)


@pytest.mark.parametrize("model", [Logistic(), Poisson()])
def test_no_direction_of_a_fine_grid_is_worse_than_the_one_found(model: GLM) -> None:
    x = 0.4 + RNG(2).standard_normal((40, 2)) * [2.0, 0.5]
    found = retentiveness(model, x, radius=2.0, rng=RNG(3))
    angles = np.linspace(0, 2 * np.pi, 361)
    grid = [
        ratio(model, x, length * np.array([np.cos(angle), np.sin(angle)]))
        for angle in angles
        for length in np.linspace(0.1, 2, 20)
    ]
    assert found.rho <= min(0.5, *grid) * (1 + 1e-4)
    assert found.rho == pytest.approx(min(0.5, ratio(model, x, found.v)))
    assert np.linalg.norm(found.v) <= 2 + 1e-9


def test_a_wider_radius_never_helps_a_logistic_model() -> None:
    x = RNG(4).standard_normal((60, 4))
    rhos = [retentiveness(Logistic(), x, radius=r, rng=RNG(0)).rho for r in (1.0, 2.0, 4.0, 8.0)]
    assert rhos == sorted(rhos, reverse=True)


def test_directions_that_see_nothing_are_no_obstacle() -> None:
    x = np.array([[1.0, 0.0], [-1.0, 0.0]])
    assert ratio(Logistic(), x, np.array([0.0, 3.0])) == np.inf


@pytest.mark.parametrize("length", [0.3, 3.0])
def test_the_searchs_gradient_is_right(length: float) -> None:
    x, w = RNG(5).standard_normal((20, 3)), 1 + RNG(6).random(20)
    args = (Logistic(), x, w, length)
    value = lambda u: _log_ratio(u, *args)[0]  # noqa: E731
    assert check_grad(value, lambda u: _log_ratio(u, *args)[1], np.array([0.4, -1.0, 0.7])) < 1e-6


def test_without_a_radius_there_is_no_rho() -> None:
    with pytest.raises(UserError, match="radius must be a number above 0, got inf"):
        retentiveness(Logistic(), np.ones((3, 1)), radius=np.inf, rng=RNG(0))
