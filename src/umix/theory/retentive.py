"""ρ-retentiveness (assumption 5.1): a lower bound on the model's curvature on the data, estimated by search."""

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.optimize import minimize

from umix.errors import UserError
from umix.theory.glm import GLM, Array

#: The assumption needs ρ in (0, 1/2], so larger values are reduced to this one.
LARGEST = 0.5


@final
@dataclass(frozen=True, eq=False)
class Retentiveness:
    """``rho`` of the data on ``‖v‖ ≤ radius``, and the ``v`` [d] with the smallest ratio."""

    rho: float
    v: Array
    radius: float


def ratio(glm: GLM, x: Array, v: Array, w: Array | None = None) -> float:
    """``E[w A''(xᵀv)]² / min{1, E[w (xᵀv)²]}``, infinite if xᵀv is 0 on all rows; without ``w`` as in the paper."""
    weights = np.ones(len(x)) if w is None else w
    z = x @ v
    spread = float(np.mean(weights * z**2))
    curvature = float(np.mean(weights * glm.variance(z)))
    return curvature**2 / min(1.0, spread) if spread > 0 else np.inf


def retentiveness(
    glm: GLM,
    x: Array,
    *,
    radius: float,
    rng: np.random.Generator,
    w: Array | None = None,
    starts: int = 8,
    shells: int = 4,
) -> Retentiveness:
    """The smallest ratio found over ``0 < ‖v‖ ≤ radius``, at most 1/2.

    The search starts from the widest axes and from ``starts`` random directions, on ``shells`` spheres, each with half the radius
    of the one before. The ratio is attained, so the true constant of the data is this value or smaller. A logistic model needs a
    radius, because its curvature goes to 0 along any ray. For it the ratio falls along the ray, so one shell is enough.
    """
    if not 0 < radius < np.inf:
        raise UserError(
            f"The radius must be a number above 0, got {radius:g}: on all of space logistic curvature goes to 0."
        )
    weights = np.ones(len(x)) if w is None else w
    # Only the row space matters: directions orthogonal to it change no prediction.
    _, values, basis = np.linalg.svd(x, full_matrices=False)
    basis = basis[values > 1e-10 * values[0]]
    inner = x @ basis.T
    first = np.concatenate([np.eye(len(basis))[:4], rng.standard_normal((starts, len(basis)))])
    best, worst = np.inf, basis[0] * radius
    for length in radius * 0.5 ** np.arange(shells):
        for start in np.concatenate([first, -first]):
            optimum = minimize(_log_ratio, start, args=(glm, inner, weights, length), jac=True, method="L-BFGS-B")
            if optimum.fun < best:
                best, worst = float(optimum.fun), length * optimum.x / np.linalg.norm(optimum.x) @ basis
    return Retentiveness(min(LARGEST, float(np.exp(best))), worst, radius)


def _log_ratio(u: Array, glm: GLM, x: Array, w: Array, length: float) -> tuple[float, Array]:
    """Logarithm of the ratio at ``length · u/‖u‖`` and its gradient by ``u``."""
    norm = float(np.linalg.norm(u))
    z = x @ u * (length / norm)
    curvature, spread = float(np.mean(w * glm.variance(z))), float(np.mean(w * z**2))
    by_z = 2 * w * glm.third(z) / (len(x) * curvature)
    if spread < 1:
        by_z -= 2 * w * z / (len(x) * spread)
    by_v = by_z @ x
    unit = u / norm
    return 2 * np.log(curvature) - np.log(min(1.0, spread)), (length / norm) * (by_v - unit * (unit @ by_v))
