"""Predictors against torch's gradients and Hessians."""

import numpy as np
import pytest
import torch

from umix.theory.predictor import Linear, Predictor, Quadratic
from umix.theory.sample import Sample


@pytest.fixture(params=["linear", "quadratic"])
def f(request: pytest.FixtureRequest) -> Predictor:
    return request.getfixturevalue(request.param)


def in_torch(f: Predictor, x: torch.Tensor) -> torch.Tensor:
    theta = torch.from_numpy(f.theta)
    return x @ theta + (0.5 * x @ torch.from_numpy(f.curvature) @ x if isinstance(f, Quadratic) else 0)


def test_between_is_the_value_at_the_mixed_input(f: Predictor, sample: Sample) -> None:
    x = sample.x
    mixed = [[f.value((0.3 * a + 0.7 * b)[None])[0] for b in x] for a in x]
    np.testing.assert_allclose(f.between(x, 0.3), mixed, atol=1e-12)


def test_slope_and_bend_are_the_derivatives_towards_the_partner(f: Predictor, sample: Sample) -> None:
    slope, bend = f.slope(sample.x), f.bend(sample.x)
    for i, j in [(0, 1), (5, 2), (3, 3)]:
        here, step = torch.from_numpy(sample.x[i]), torch.from_numpy(sample.x[j] - sample.x[i])
        gradient = torch.autograd.functional.jacobian(lambda x: in_torch(f, x), here)
        hessian = torch.autograd.functional.hessian(lambda x: in_torch(f, x), here)
        assert slope[i, j] == pytest.approx(float(gradient @ step), abs=1e-12)
        assert bend[i, j] == pytest.approx(float(step @ hessian @ step), abs=1e-12)


def test_a_quadratic_predictor_without_curvature_is_linear(linear: Linear, sample: Sample) -> None:
    flat = Quadratic(linear.theta, np.zeros((3, 3)))
    np.testing.assert_allclose(flat.between(sample.x, 0.2), linear.between(sample.x, 0.2))
    np.testing.assert_array_equal(flat.bend(sample.x), linear.bend(sample.x))
