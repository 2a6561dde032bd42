"""Generalised linear models, the functions that they are applied to, and weighted samples with their mixing partners."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Array = NDArray[np.float64]


@final
@dataclass(frozen=True)
class GLM:
    """A log-partition function ``A`` (``partition``) and its derivatives ``A'``, ``A''`` and ``A'''``.

    ``A(z)`` grows like ``|z|**growth``, infinite if faster than every power. ``draw`` returns labels with mean ``A'(z)``.
    """

    name: str
    growth: float
    partition: Callable[[Array], Array]
    mean: Callable[[Array], Array]
    variance: Callable[[Array], Array]
    third: Callable[[Array], Array]
    draw: Callable[[Array, np.random.Generator], Array]

    def loss(self, z: Array, y: Array) -> Array:
        """``A(z) - y z``: the negative log-likelihood up to a term without ``z``."""
        return self.partition(z) - y * z


LOGISTIC = GLM(
    name="logistic",
    growth=1.0,
    partition=lambda z: np.logaddexp(0.0, z),
    mean=lambda z: np.asarray(expit(z)),
    variance=lambda z: np.asarray(expit(z) * expit(-z)),
    third=lambda z: np.asarray(expit(z) * expit(-z) * (expit(-z) - expit(z))),
    draw=lambda z, rng: np.asarray(rng.random(z.shape) < expit(z), dtype=np.float64),
)
GAUSSIAN = GLM(  # least squares with noise of unit variance
    name="gaussian",
    growth=2.0,
    partition=lambda z: 0.5 * z**2,
    mean=np.array,
    variance=np.ones_like,
    third=np.zeros_like,
    draw=lambda z, rng: z + rng.standard_normal(z.shape),
)
POISSON = GLM(
    name="poisson",
    growth=math.inf,
    partition=np.exp,
    mean=np.exp,
    variance=np.exp,
    third=np.exp,
    draw=lambda z, rng: rng.poisson(np.exp(z)).astype(np.float64),
)
GLMS = {model.name: model for model in (LOGISTIC, GAUSSIAN, POISSON)}


@final
@dataclass(frozen=True, eq=False)
class Predictor:
    """``f(x) = θᵀx + xᵀQx/2``, whose value is the ``z`` of a model; without the symmetric ``curvature`` Q it is linear.

    A linear ``f`` is the model of the paper's theorem. Lemma A.1 holds for any smooth ``f``; its third term needs a curved one.
    In what follows entry ``[i, j]`` is for the step from row i towards row j.
    """

    theta: Array
    curvature: Array | None = None

    def value(self, x: Array) -> Array:
        """``f(x_i)`` [n]."""
        z = x @ self.theta
        if self.curvature is not None:
            z = z + 0.5 * np.einsum("id,de,ie->i", x, self.curvature, x)
        return np.asarray(z)

    def between(self, x: Array, lam: float) -> Array:
        """``f(lam x_i + (1 - lam) x_j)`` [n, n]."""
        z, gram, diagonal = x @ self.theta, self._gram(x), np.diag(self._gram(x))
        bent = lam**2 * diagonal[:, None] + 2 * lam * (1 - lam) * gram + (1 - lam) ** 2 * diagonal[None, :]
        return np.asarray(lam * z[:, None] + (1 - lam) * z[None, :] + 0.5 * bent)

    def slope(self, x: Array) -> Array:
        """``∇f(x_i)ᵀ(x_j - x_i)`` [n, n]."""
        z, gram = x @ self.theta, self._gram(x)
        return np.asarray(z[None, :] - z[:, None] + gram - np.diag(gram)[:, None])

    def bend(self, x: Array) -> Array:
        """``(x_j - x_i)ᵀ ∇²f(x_i) (x_j - x_i)`` [n, n]."""
        gram = self._gram(x)
        diagonal = np.diag(gram)
        return np.asarray(diagonal[:, None] - 2 * gram + diagonal[None, :])

    def _gram(self, x: Array) -> Array:
        """``x_iᵀ Q x_j`` [n, n]."""
        return np.zeros((len(x), len(x))) if self.curvature is None else x @ self.curvature @ x.T


@final
@dataclass(frozen=True, eq=False)
class Sample:
    """``x`` [n, d], ``y`` [n], weights ``w`` [n], and the probability ``partner`` [n] of each row as a mixing partner.

    By default partners are uniform, as in algorithm 1. ``by_weight`` gives partners in proportion to their weights.
    """

    x: Array
    y: Array
    w: Array
    partner: Array

    @classmethod
    def of(cls, x: Array, y: Array, w: Array | None = None) -> Self:
        """The sample with uniform partners; without ``w`` every weight is 1."""
        n = len(x)
        return cls(x, y, np.ones(n) if w is None else w, np.full(n, 1 / n))

    def by_weight(self) -> Self:
        """The same rows with partners drawn in proportion to their weights (the ``D_x^w`` of the printed proof)."""
        return replace(self, partner=self.w / self.w.sum())

    def centred(self) -> Self:
        """The same sample moved so that the mean partner, ``Σ_j partner_j x_j``, is 0."""
        return replace(self, x=self.x - self.partner @ self.x)

    def partner_covariance(self) -> Array:
        """``Σ_j partner_j x_j x_jᵀ``, the Σ of the regulariser of lemma A.2."""
        return np.asarray((self.x * self.partner[:, None]).T @ self.x)
