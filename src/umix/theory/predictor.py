"""Functions ``f`` of the input whose value is the linear predictor ``z`` of a generalised linear model.

A linear ``f`` is the model of the paper's theorem. The quadratic ``f`` is for lemma A.1, which holds for any smooth ``f``: its
third term has the second derivative of ``f``, which is zero for a linear one.
"""

import abc
from dataclasses import dataclass
from typing import final

import numpy as np

from umix.theory.glm import Array


class Predictor(abc.ABC):
    """``f`` and its derivatives for the expansion; entry ``[i, j]`` is for the step from row i towards row j."""

    @abc.abstractmethod
    def value(self, x: Array) -> Array:
        """``f(x_i)`` [n]."""

    @abc.abstractmethod
    def between(self, x: Array, lam: float) -> Array:
        """``f(lam x_i + (1 - lam) x_j)`` [n, n]."""

    @abc.abstractmethod
    def slope(self, x: Array) -> Array:
        """``∇f(x_i)ᵀ(x_j - x_i)`` [n, n]."""

    @abc.abstractmethod
    def bend(self, x: Array) -> Array:
        """``(x_j - x_i)ᵀ ∇²f(x_i) (x_j - x_i)`` [n, n]."""


@final
@dataclass(frozen=True, eq=False)
class Linear(Predictor):
    """``f(x) = θᵀx``."""

    theta: Array

    def value(self, x: Array) -> Array:
        return np.asarray(x @ self.theta)

    def between(self, x: Array, lam: float) -> Array:
        z = self.value(x)
        return lam * z[:, None] + (1 - lam) * z[None, :]

    def slope(self, x: Array) -> Array:
        z = self.value(x)
        return z[None, :] - z[:, None]

    def bend(self, x: Array) -> Array:
        return np.zeros((len(x), len(x)))


@final
@dataclass(frozen=True, eq=False)
class Quadratic(Predictor):
    """``f(x) = θᵀx + xᵀQx/2`` with a symmetric ``Q``."""

    theta: Array
    curvature: Array

    def value(self, x: Array) -> Array:
        return np.asarray(x @ self.theta + 0.5 * np.einsum("id,de,ie->i", x, self.curvature, x))

    def between(self, x: Array, lam: float) -> Array:
        gram = x @ self.curvature @ x.T
        diagonal = np.diag(gram)
        bent = lam**2 * diagonal[:, None] + 2 * lam * (1 - lam) * gram + (1 - lam) ** 2 * diagonal[None, :]
        return Linear(self.theta).between(x, lam) + 0.5 * bent

    def slope(self, x: Array) -> Array:
        gram = x @ self.curvature @ x.T
        return Linear(self.theta).slope(x) + gram - np.diag(gram)[:, None]

    def bend(self, x: Array) -> Array:
        gram = x @ self.curvature @ x.T
        diagonal = np.diag(gram)
        return diagonal[:, None] - 2 * gram + diagonal[None, :]
