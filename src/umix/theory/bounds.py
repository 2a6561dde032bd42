"""Theorem 5.1: the generalisation bound of weighted mixup, with rank(Σ_X), beside that of weighted ERM, with d."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.optimize import minimize

from umix.theory.glm import GLM, Array
from umix.theory.losses import Estimate

#: Eigenvalues below this share of the largest count as 0: standard deviations below 1e-5 of the largest one.
TOLERANCE = 1e-10
#: Assumption 5.1 needs ρ in (0, 1/2], so larger values are reduced to this one.
_LARGEST_RHO = 0.5


def generalisation_bound(
    *, dimension: float, n: int, gamma: float, rho: float, lipschitz: float, largest: float, delta: float
) -> float:
    """``2·lipschitz·radius·√(dimension/n) + largest·√(log(2/δ)/2n)`` with the radius ``max{(γ/ρ)^¼, (γ/ρ)^½}``.

    ``dimension`` is rank(Σ_X) for weighted mixup and d for weighted ERM; ``lipschitz`` is the paper's L·L_A, the largest of
    ``w |A'(z) - y|``; ``largest`` is its B, the range of ``w ℓ``. The radius bounds the length of Σ_X^½θ: it follows from
    ``a(θ) θᵀΣ_Xθ ≤ γ`` and ``a(θ)² ≥ ρ min{1, θᵀΣ_Xθ}``.
    """
    radius = float(max((gamma / rho) ** 0.25, (gamma / rho) ** 0.5))
    return 2 * lipschitz * radius * math.sqrt(dimension / n) + largest * math.sqrt(math.log(2 / delta) / (2 * n))


@final
@dataclass(frozen=True, eq=False)
class GroupMoments:
    """For each group its share ``k`` [g], its weight ``w`` [g] and its second moments ``sigma`` [g, d, d] = E[xxᵀ | group]."""

    k: Array
    w: Array
    sigma: Array

    def weighted(self) -> Array:
        """``Σ_X = Σ_g k_g w_g Σ_g`` [d, d]."""
        return np.asarray(np.einsum("g,gde->de", self.k * self.w, self.sigma))

    def plain(self) -> Array:
        """``Σ_g k_g Σ_g = E[xxᵀ]`` [d, d]."""
        return np.asarray(np.einsum("g,gde->de", self.k, self.sigma))


def rank(sigma: Array) -> int:
    """The numerical rank of a covariance: how many eigenvalues exceed ``TOLERANCE`` times the largest.

    >>> rank(np.diag([4.0, 1.0, 0.0]))
    2
    """
    values = np.clip(np.linalg.eigvalsh(sigma), 0.0, None)
    return int(np.sum(values > TOLERANCE * values[-1]))


def inverse_root(sigma: Array) -> Array:
    """``Σ^(†/2)``: the root of the pseudo-inverse, zero on directions below the tolerance."""
    values, vectors = np.linalg.eigh(sigma)
    keep = values > TOLERANCE * max(values[-1], 0.0)
    return np.asarray((vectors[:, keep] / np.sqrt(values[keep])) @ vectors[:, keep].T)


def whitened_trace(moments: GroupMoments) -> float:
    """``tr(Σ_X† E[xxᵀ])``, which the last step of the proof calls rank(Σ_X); they are equal if all weights are 1.

    It lies between rank/max w and rank/min w, so it is at most the rank if no weight is below 1, as with w = ηu + 1.
    """
    root = inverse_root(moments.weighted())
    return float(np.trace(root @ moments.plain() @ root))


def ellipsoid_complexity(x: Array, sigma: Array, *, draws: int, rng: np.random.Generator) -> Estimate:
    """The empirical Rademacher complexity of ``{x → θᵀx : θᵀΣθ ≤ 1}`` on the rows of x, over ``draws`` sign vectors.

    The supremum is attained: ``1/n · ‖Σ^(†/2) Σ_i ξ_i x_i‖``.
    """
    white = x @ inverse_root(sigma)
    signs = rng.choice([-1.0, 1.0], size=(draws, len(x)))
    return Estimate.of(1 / len(x) * np.linalg.norm(signs @ white, axis=1))


def retentiveness(glm: GLM, x: Array, w: Array, *, radius: float, shells: int = 1) -> float:
    """ρ of assumption 5.1: the smallest ``E[w A''(xᵀv)]² / min{1, E[w (xᵀv)²]}`` found over ``0 < ‖v‖ ≤ radius``, at most 1/2.

    The search starts from the widest axes on ``shells`` spheres, each with half the radius of the one before. The ratio is
    attained, so the true constant of the data is this value or smaller. A logistic model needs a radius, because its curvature
    goes to 0 along any ray. For it the ratio falls along the ray, so one shell is enough.
    """
    # Only the row space matters: directions orthogonal to it change no prediction.
    _, values, basis = np.linalg.svd(x, full_matrices=False)
    basis = basis[values > 1e-10 * values[0]]
    inner = x @ basis.T
    axes = np.eye(len(basis))[:4]
    best = min(
        float(minimize(_log_ratio, start, args=(glm, inner, w, length), jac=True, method="L-BFGS-B").fun)
        for length in radius * 0.5 ** np.arange(shells)
        for start in np.concatenate([axes, -axes])
    )
    return min(_LARGEST_RHO, float(np.exp(best)))


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
