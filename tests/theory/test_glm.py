"""Models and predictors against torch's derivatives; weighted samples and their partners."""

import math

import numpy as np
import pytest
import torch

from umix.theory.glm import GLM, GLMS, LOGISTIC, Predictor, Sample

TORCH = {
    "logistic": torch.nn.functional.softplus,
    "gaussian": lambda z: z**2 / 2,
    "poisson": torch.exp,
}


@pytest.mark.parametrize("model", GLMS.values(), ids=GLMS)
def test_mean_variance_and_third_are_derivatives_of_the_partition_function(model: GLM) -> None:
    z = torch.linspace(-6, 6, 41, dtype=torch.float64, requires_grad=True)
    value = TORCH[model.name](z)
    points = z.detach().numpy()
    for ours in (model.partition, model.mean, model.variance, model.third):
        np.testing.assert_allclose(ours(points), value.detach().numpy(), atol=1e-12)
        if value.requires_grad:
            (value,) = torch.autograd.grad(value.sum(), z, create_graph=True, materialize_grads=True)


def test_logistic_functions_survive_large_inputs() -> None:
    z = np.array([-800.0, 800.0])
    np.testing.assert_array_equal(LOGISTIC.partition(z), [0.0, 800.0])
    np.testing.assert_array_equal(LOGISTIC.variance(z), [0.0, 0.0])


@pytest.mark.parametrize("model", GLMS.values(), ids=GLMS)
def test_drawn_labels_have_the_models_mean_and_variance(model: GLM) -> None:
    z = np.full(200_000, 0.7)
    y = model.draw(z, np.random.default_rng(0))
    variance = float(model.variance(z[:1])[0])
    assert y.mean() == pytest.approx(float(model.mean(z[:1])[0]), abs=5 * math.sqrt(variance / len(z)))
    assert y.var() == pytest.approx(variance, rel=0.03)


@pytest.fixture(params=["linear", "quadratic"])
def f(request: pytest.FixtureRequest) -> Predictor:
    return request.getfixturevalue(request.param)


def in_torch(f: Predictor, x: torch.Tensor) -> torch.Tensor:
    theta = torch.from_numpy(f.theta)
    return x @ theta + (0.5 * x @ torch.from_numpy(f.curvature) @ x if f.curvature is not None else 0)


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


X = np.array([[1.0, 0.0], [3.0, 2.0], [5.0, 7.0]])
Y = np.zeros(3)


def test_centring_takes_off_the_mean_of_the_partners() -> None:
    plain = Sample.of(X, Y, np.array([1.0, 1.0, 2.0]))
    np.testing.assert_allclose(plain.centred().x.mean(axis=0), 0, atol=1e-15)
    weighted = plain.by_weight()
    np.testing.assert_allclose(weighted.w @ weighted.centred().x, 0, atol=1e-15)


def test_the_covariance_of_the_partners_carries_weights_only_if_partners_do() -> None:
    w = np.array([1.0, 1.0, 4.0])
    sample = Sample.of(X, Y, w)
    np.testing.assert_allclose(sample.partner_covariance(), X.T @ X / 3)
    np.testing.assert_allclose(sample.by_weight().partner_covariance(), X.T @ np.diag(w) @ X / 6)
