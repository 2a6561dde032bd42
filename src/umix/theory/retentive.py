"""ρ-retentiveness (assumption 5.1): how flat the model's curvature gets on the data, estimated by search."""

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.optimize import minimize

from umix.errors import UserError
from umix.theory.glm import GLM, Array

#: The assumption asks for ρ in (0, 1/2]; larger values are of no further use.
LARGEST = 0.5


@final
@dataclass(frozen=True, eq=False)
class Retentiveness:
    """``rho`` of the data on ``‖v‖ ≤ radius``, and the direction ``v`` [d] that is worst."""

    rho: float
    v: Array
    radius: float


def ratio(glm: GLM, x: Array, v: Array, w: Array | None = None) -> float:
    """``E[w A''(xᵀv)]² / min{1, E[w (xᵀv)²]}``, infinite where v sees nothing of x; without ``w`` the assumption as printed."""
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

    A search over directions from the widest axes and ``starts`` random ones, on ``shells`` spheres, each half the one before: what
    it finds is attained, so the true constant of the data is this or smaller. Without a radius a logistic model has none: along
    any ray its curvature goes to 0, and the ratio falls, so that one shell is enough for it.
    """
    if not 0 < radius < np.inf:
        raise UserError(
            f"The radius must be a number above 0, got {radius:g}: on all of space logistic curvature goes to 0."
        )
    weights = np.ones(len(x)) if w is None else w
    # All that matters is in the row space: a direction across it changes no prediction.
    _, values, basis = np.linalg.svd(x, full_matrices=False)
    basis = basis[values > 1e-10 * values[0]]
    inner = x @ basis.T
    first = np.concatenate([np.eye(len(basis))[:4], rng.standard_normal((starts, len(basis)))])
    best, worst = np.inf, basis[0] * radius
    for length in radius * 0.5 ** np.arange(shells):
        for start in np.concatenate([first, -first]):
            found = minimize(_log_ratio, start, args=(glm, inner, weights, length), jac=True, method="L-BFGS-B")
            if found.fun < best:
                best, worst = float(found.fun), length * found.x / np.linalg.norm(found.x) @ basis
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
