"""Fits of a generalised linear model: weighted ERM, and weighted mixup on rows that approximate its expectation."""

import numpy as np

from umix.errors import UserError
from umix.theory.glm import GLM, Array
from umix.theory.mixing_law import MixingLaw
from umix.theory.sample import Sample

_STEPS = 100
_SMALL = 1e-10


def minimiser(glm: GLM, sample: Sample, *, ridge: float = 1e-3) -> Array:
    """θ with the least ``1/n Σ w_i ℓ(x_i, y_i) + ridge/2 ‖θ‖²`` by damped Newton steps.

    The ridge is for separable samples, on which θ of a logistic model would grow without limit.
    """
    if not ridge > 0:
        raise UserError(f"The ridge must be above 0, got {ridge:g}; 1e-6 changes little.")
    n, d = sample.x.shape
    theta = np.zeros(d)
    value = _objective(glm, sample, theta, ridge)
    for _ in range(_STEPS):
        z = sample.x @ theta
        gradient = sample.x.T @ (sample.w * (glm.mean(z) - sample.y)) / n + ridge * theta
        hessian = (sample.x * (sample.w * glm.variance(z))[:, None]).T @ sample.x / n + ridge * np.eye(d)
        step = np.linalg.solve(hessian, gradient)
        decrease = float(gradient @ step)
        if decrease < _SMALL:
            return theta
        size = 1.0
        while (moved := _objective(glm, sample, theta - size * step, ridge)) > value - 1e-4 * size * decrease:
            size /= 2
            if size < 1e-8:  # smaller steps change the objective by less than its rounding error
                return theta
        theta, value = theta - size * step, moved
    return theta


def mixed_rows(sample: Sample, law: MixingLaw, *, partners: int, nodes: int, rng: np.random.Generator) -> Sample:
    """A sample whose weighted loss estimates ``mixup_loss``: every row is mixed with ``partners`` random rows at ``nodes`` λ.

    λ is integrated by quadrature, so the choice of partners is the only noise.
    """
    n = len(sample.x)
    x, w = [], []
    points = law.tilted().nodes(nodes)
    for _ in range(partners):
        other = sample.x[rng.choice(n, size=n, p=sample.partner)]
        for lam, mass in points:
            x.append(lam * sample.x + (1 - lam) * other)
            w.append(sample.w * mass * len(points))
    return Sample.of(np.concatenate(x), np.tile(sample.y, partners * len(points)), np.concatenate(w))


def _objective(glm: GLM, sample: Sample, theta: Array, ridge: float) -> float:
    losses = glm.loss(sample.x @ theta, sample.y)
    return float(np.mean(sample.w * losses)) + ridge / 2 * float(theta @ theta)
