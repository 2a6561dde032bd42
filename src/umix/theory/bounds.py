"""Theorem 5.1: the generalisation bound of weighted mixup, with rank(Σ_X), beside that of weighted ERM, with d."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from umix.errors import UserError
from umix.theory.covariance import TOLERANCE, inverse_root
from umix.theory.glm import Array
from umix.theory.weighted_loss import Estimate


@final
@dataclass(frozen=True)
class Bound:
    """``complexity``: twice the Lipschitz constant times the Rademacher bound; ``deviation``: ``B √(log(2/δ)/2n)``."""

    complexity: float
    deviation: float

    @property
    def total(self) -> float:
        return self.complexity + self.deviation


def radius(gamma: float, rho: float) -> float:
    """``max{(γ/ρ)^¼, (γ/ρ)^½}``: the paper's bound on the length of Σ_X^½θ.

    It follows from ``a(θ) θᵀΣ_Xθ ≤ γ`` and ``a(θ)² ≥ ρ min{1, θᵀΣ_Xθ}``.

    >>> radius(0.5, 0.5), radius(8.0, 0.5)
    (1.0, 4.0)
    """
    _need_constants(gamma, rho)
    share = gamma / rho
    return float(max(share**0.25, share**0.5))


def tight_radius(gamma: float, rho: float) -> float:
    """The largest length that the two conditions of ``radius`` allow: ``q^½`` for ``q = γ/√ρ ≥ 1``, else ``q^⅓``."""
    _need_constants(gamma, rho)
    q = gamma / math.sqrt(rho)
    return float(max(q ** (1 / 2), q ** (1 / 3)))


def generalisation_bound(
    *, dimension: float, n: int, gamma: float, rho: float, lipschitz: float, largest: float, delta: float
) -> Bound:
    """``2·lipschitz·max{(γ/ρ)^¼, (γ/ρ)^½}·√(dimension/n) + largest·√(log(2/δ)/2n)``.

    ``dimension`` is rank(Σ_X) for weighted mixup and d for weighted ERM; ``lipschitz`` is the paper's L·L_A, the largest of
    ``w |A'(z) - y|``; ``largest`` is its B, the range of ``w ℓ``.
    """
    if not (n >= 1 and dimension >= 0 and lipschitz >= 0 and largest >= 0 and 0 < delta < 1):
        raise UserError(
            f"A bound must have n at least 1, dimension, lipschitz and largest at least 0 and delta in (0, 1), got n={n}, "
            f"dimension={dimension:g}, lipschitz={lipschitz:g}, largest={largest:g}, delta={delta:g}."
        )
    return Bound(
        complexity=2 * lipschitz * radius(gamma, rho) * math.sqrt(dimension / n),
        deviation=largest * math.sqrt(math.log(2 / delta) / (2 * n)),
    )


def weighted_rho(rho: float, w: Array) -> float:
    """A ρ for which ``E[wA'']² ≥ ρ min{1, θᵀΣ_Xθ}`` follows from the unweighted assumption: ``ρ·min(w)²/max{1, max(w)}``.

    The paper's proof replaces θᵀE[xxᵀ]θ by θᵀΣ_Xθ, which needs weights of at most 1, and
    tr(Σ_X†E[xxᵀ]) by the rank, which needs weights of at least 1.
    """
    return rho * float(w.min()) ** 2 / max(1.0, float(w.max()))


def ellipsoid_complexity(
    x: Array, sigma: Array, *, length: float, draws: int, rng: np.random.Generator, tolerance: float = TOLERANCE
) -> Estimate:
    """The empirical Rademacher complexity of ``{x → θᵀx : θᵀΣθ ≤ length²}`` on the rows of x, over ``draws`` sign vectors.

    The supremum is attained: ``length/n · ‖Σ^(†/2) Σ_i ξ_i x_i‖``.
    """
    if draws < 2:
        raise UserError(f"A Monte Carlo estimate must have at least 2 draws, got {draws}.")
    white = x @ inverse_root(sigma, tolerance=tolerance)
    signs = rng.choice([-1.0, 1.0], size=(draws, len(x)))
    suprema = length / len(x) * np.linalg.norm(signs @ white, axis=1)
    return Estimate(float(suprema.mean()), float(suprema.std(ddof=1) / math.sqrt(draws)))


def _need_constants(gamma: float, rho: float) -> None:
    if not (gamma >= 0 and 0 < rho <= 0.5):
        raise UserError(f"A bound must have gamma at least 0 and rho in (0, 1/2], got gamma={gamma:g}, rho={rho:g}.")
