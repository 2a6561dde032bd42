"""A small weighted sample per model, and an independent torch version of the losses."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits

from umix.theory.glm import GLM, GLMS, Predictor, Sample

TORCH = {"logistic": torch.nn.functional.softplus, "gaussian": lambda z: z**2 / 2, "poisson": torch.exp}


@pytest.fixture(scope="package", autouse=True)
def _one_thread() -> Iterator[None]:
    """As ``find`` does it: threads only slow down products of small matrices."""
    with threadpool_limits(1):
        yield


@pytest.fixture(params=GLMS.values(), ids=GLMS)
def model(request: pytest.FixtureRequest) -> GLM:
    return request.param


@pytest.fixture
def sample(model: GLM) -> Sample:
    """Twelve rows, not centred, with weights that depend on the inputs."""
    rng = np.random.default_rng(3)
    x = 0.3 + rng.standard_normal((12, 3)) * [1.0, 0.6, 0.3]
    y = model.draw(x @ [0.5, -0.5, 1.0], rng)
    return Sample.of(x, y, 1 + 3 * (x[:, 0] > 0.3) + rng.random(12))


@pytest.fixture
def linear() -> Predictor:
    return Predictor(np.array([0.6, -0.4, 0.8]))


@pytest.fixture
def quadratic(linear: Predictor) -> Predictor:
    half = np.random.default_rng(4).standard_normal((3, 3))
    return Predictor(linear.theta, 0.2 * (half + half.T))


@pytest.fixture
def torch_loss(model: GLM) -> Callable[[torch.Tensor, float], torch.Tensor]:
    return lambda z, y: TORCH[model.name](z) - y * z
