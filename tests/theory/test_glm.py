"""Log-partition functions against torch's derivatives."""

import math

import numpy as np
import pytest
import torch

from umix.errors import UserError
from umix.theory.glm import GLM, GLMS, Gaussian, Logistic, Poisson, glm

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
    np.testing.assert_array_equal(Logistic().partition(z), [0.0, 800.0])
    np.testing.assert_array_equal(Logistic().variance(z), [0.0, 0.0])


@pytest.mark.parametrize(("model", "reach"), [(Logistic(), 3.0), (Gaussian(), 3.0), (Poisson(), 3.0)], ids=GLMS)
def test_the_lipschitz_constant_is_the_steepest_slope_in_reach(model: GLM, reach: float) -> None:
    z = np.linspace(-reach, reach, 2001)
    assert model.lipschitz(reach) == pytest.approx(np.max(np.abs(model.mean(z))))


def test_only_the_logistic_model_is_lipschitz_everywhere() -> None:
    assert Logistic().lipschitz() == 1
    for model in (Gaussian(), Poisson()):
        with pytest.raises(UserError, match="grows without limit; say with reach"):
            model.lipschitz()


@pytest.mark.parametrize("model", GLMS.values(), ids=GLMS)
def test_drawn_labels_have_the_models_mean_and_variance(model: GLM) -> None:
    z = np.full(200_000, 0.7)
    y = model.draw(z, np.random.default_rng(0))
    variance = float(model.variance(z[:1])[0])
    assert y.mean() == pytest.approx(float(model.mean(z[:1])[0]), abs=5 * math.sqrt(variance / len(z)))
    assert y.var() == pytest.approx(variance, rel=0.03)


def test_an_unknown_model_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UserError, match="did you mean 'logistic'"):
        glm("logistics")
