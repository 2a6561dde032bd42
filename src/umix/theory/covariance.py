"""Σ_X = Σ_g k_g w_g Σ_g from data, its numerical rank, and the effect of weights on the trace behind the bound."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from umix.errors import UserError
from umix.theory.glm import Array

#: Eigenvalues below this share of the largest count as 0: standard deviations below 1e-5 of the largest one.
TOLERANCE = 1e-10


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


@final
@dataclass(frozen=True, eq=False)
class Rank:
    """The number of ``eigenvalues`` (largest first) that exceed ``tolerance`` times the largest."""

    value: int
    tolerance: float
    eigenvalues: Array


def group_moments(x: Array, group: NDArray[np.int64], w: Array) -> GroupMoments:
    """Shares, weights and second moments of the groups 0 … G-1; ``w`` [g] is the weight of all rows of a group.

    The paper calls E[xxᵀ] a covariance, so the data are not centred here.
    """
    n_groups = len(w)
    if len(group) != len(x) or (len(group) and not 0 <= group.min() <= group.max() < n_groups):
        raise UserError(f"Every row must have a group in 0 … {n_groups - 1}, one for each weight in w.")
    sizes = np.bincount(group, minlength=n_groups)
    if (sizes == 0).any():
        raise UserError(
            f"Every group must have rows, got none for group {int(np.argmin(sizes))}; drop it and its weight."
        )
    members = [x[group == g] for g in range(n_groups)]
    return GroupMoments(sizes / len(x), np.asarray(w, float), np.stack([m.T @ m / len(m) for m in members]))


def rank(sigma: Array, *, tolerance: float = TOLERANCE) -> Rank:
    """The numerical rank of a covariance.

    >>> rank(np.diag([4.0, 1.0, 0.0])).value, rank(np.diag([4.0, 1.0, 0.0]), tolerance=0.5).value
    (2, 1)
    """
    if not 0 <= tolerance < 1:
        raise UserError(f"The rank's tolerance must lie in [0, 1), got {tolerance:g}.")
    values = np.clip(np.linalg.eigvalsh(sigma)[::-1], 0.0, None)
    return Rank(int(np.sum(values > tolerance * values[0])), tolerance, values)


def inverse_root(sigma: Array, *, tolerance: float = TOLERANCE) -> Array:
    """``Σ^(†/2)``: the root of the pseudo-inverse, zero on directions below the tolerance."""
    values, vectors = np.linalg.eigh(sigma)
    keep = values > tolerance * max(values[-1], 0.0)
    return np.asarray((vectors[:, keep] / np.sqrt(values[keep])) @ vectors[:, keep].T)


def whitened_trace(moments: GroupMoments, *, tolerance: float = TOLERANCE) -> float:
    """``tr(Σ_X† E[xxᵀ])``, which the last step of the proof calls rank(Σ_X); they are equal if all weights are 1.

    It lies between rank/max w and rank/min w, so it is at most the rank if no weight is below 1, as with w = ηu + 1.
    """
    root = inverse_root(moments.weighted(), tolerance=tolerance)
    return float(np.trace(root @ moments.plain() @ root))
