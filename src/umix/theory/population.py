"""A mixture of subpopulations in a low-dimensional subspace, with exact risks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from umix.theory.bounds import GroupMoments
from umix.theory.glm import LOGISTIC, Array

_LEGENDRE = np.polynomial.legendre.leggauss(96)
_SIGNAL = 3.0  # the standard deviation of a logit, the same in all groups


@final
@dataclass(frozen=True, eq=False)
class Population:
    """Groups g with share ``k`` [g]: x = basis·c, c ~ N(0, diag(spread_g)), and y Bernoulli with logit truth_gᵀc.

    ``basis`` [d, r] has orthonormal columns, so the intrinsic rank is r; ``spread`` and ``truth`` are [g, r].
    """

    k: Array
    basis: Array
    spread: Array
    truth: Array

    @classmethod
    def drawn(cls, *, d: int, r: int, rng: np.random.Generator) -> Self:
        """A population of three groups with shares 0.7, 0.2 and 0.1.

        The first has variance in all r directions, the second a large variance in the first half of them, the third
        a small variance in the other half. Their labels follow different directions with the same strength.
        """
        half = (r + 1) // 2
        spread = np.zeros((3, r))
        spread[0], spread[1, :half], spread[2, r - half :] = 1.0, 2.0, 0.5
        shared, per_group = rng.standard_normal(r), rng.standard_normal((3, r))
        turn = np.radians([0.0, 60.0, 120.0])
        truth = np.cos(turn)[:, None] * shared + np.sin(turn)[:, None] * per_group
        truth *= _SIGNAL / np.sqrt(np.sum(spread * truth**2, axis=1))[:, None]
        # Drawn last, so that populations with another d are equal in everything else.
        frame, _ = np.linalg.qr(rng.standard_normal((d, r)))
        return cls(np.array([0.7, 0.2, 0.1]), frame, spread, truth)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array, NDArray[np.int64]]:
        """Inputs [n, d], labels [n] and groups [n]."""
        group = rng.choice(len(self.k), size=n, p=self.k)
        inner = rng.standard_normal((n, self.basis.shape[1])) * np.sqrt(self.spread[group])
        y = LOGISTIC.draw(np.sum(inner * self.truth[group], axis=1), rng)
        return inner @ self.basis.T, y, group

    def moments(self, w: Array) -> GroupMoments:
        """The true second moments of the groups, with the weight ``w`` [g] of each group."""
        return GroupMoments(self.k, w, np.einsum("dr,gr,er->gde", self.basis, self.spread, self.basis))

    def risk(self, theta: Array, w: Array) -> float:
        """``E[w ℓ(θ, x, y)]`` exactly: given the group, θᵀx and the logit are jointly normal with mean 0."""
        inner = self.basis.T @ theta
        total = 0.0
        for k, weight, spread, truth in zip(self.k, w, self.spread, self.truth, strict=True):
            together = float(np.sum(spread * inner * truth))
            # Stein: E[σ(t) u] = cov(u, t) E[σ'(t)].
            fit = together * expected_variance(float(np.sqrt(np.sum(spread * truth**2))))
            total += k * weight * (expected_partition(float(np.sqrt(np.sum(spread * inner**2)))) - fit)
        return float(total)


def expected_partition(scale: float) -> float:
    """``E log(1 + exp u)`` for u ~ N(0, scale²).

    >>> round(expected_partition(0.0), 6)  # log 2
    0.693147
    """
    # log(1+e^u) is u/2 + |u|/2 + log(1+e^-|u|); the mean of |u| is known and the rest is smooth on one side.
    return float(scale / np.sqrt(2 * np.pi) + _one_sided(lambda u: np.log1p(np.exp(-u)), scale, at_zero=np.log(2)))


def expected_variance(scale: float) -> float:
    """``E σ'(u)`` for u ~ N(0, scale²)."""
    return _one_sided(lambda u: np.asarray(expit(u) * expit(-u)), scale, at_zero=0.25)


def _one_sided(even: Callable[[Array], Array], scale: float, *, at_zero: float) -> float:
    """Mean of a decaying even function of u ~ N(0, scale²), by Gauss–Legendre where it and the density are not 0."""
    if scale == 0:
        return at_zero
    top = min(10 * scale, 45.0)
    u = top * (1 + _LEGENDRE[0]) / 2
    density = np.exp(-0.5 * (u / scale) ** 2) / (scale * np.sqrt(2 * np.pi))
    return float(top * np.sum(_LEGENDRE[1] * density * even(u)))
