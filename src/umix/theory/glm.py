"""Generalised linear models: the loss ``A(z) - y z`` of a log-partition function ``A``, and derivatives of ``A``."""

import abc
import math
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from umix.errors import UserError, unknown

Array = NDArray[np.float64]


class GLM(abc.ABC):
    """A log-partition function ``A``; ``mean`` is ``A'``, ``variance`` is ``A''`` and ``third`` is ``A'''``."""

    name: ClassVar[str]
    #: ``A(z)`` grows like ``|z|**growth``; infinite if faster than every power.
    growth: ClassVar[float]

    @abc.abstractmethod
    def partition(self, z: Array) -> Array: ...

    @abc.abstractmethod
    def mean(self, z: Array) -> Array: ...

    @abc.abstractmethod
    def variance(self, z: Array) -> Array: ...

    @abc.abstractmethod
    def third(self, z: Array) -> Array: ...

    @abc.abstractmethod
    def slope(self, reach: float) -> float:
        """The Lipschitz constant of ``A`` on ``[-reach, reach]``; infinite if ``A`` is not Lipschitz there."""

    @abc.abstractmethod
    def draw(self, z: Array, rng: np.random.Generator) -> Array:
        """Labels with mean ``A'(z)``."""

    @final
    def loss(self, z: Array, y: Array) -> Array:
        """``A(z) - y z``: the negative log-likelihood up to a term without ``z``."""
        return self.partition(z) - y * z

    @final
    def lipschitz(self, reach: float = math.inf) -> float:
        """The Lipschitz constant ``L_A`` of ``A`` on ``[-reach, reach]``; raises UserError if it is infinite."""
        slope = self.slope(reach)
        if not math.isfinite(slope):
            raise UserError(
                f"The log-partition function must be Lipschitz for the bound, but that of the {self.name} model grows "
                f"without limit; say with reach how large |θᵀx| can get."
            )
        return slope


@final
class Logistic(GLM):
    """``A(z) = log(1 + exp z)``, labels in {0, 1}."""

    name = "logistic"
    growth = 1.0

    def partition(self, z: Array) -> Array:
        return np.logaddexp(0.0, z)

    def mean(self, z: Array) -> Array:
        return np.asarray(expit(z))

    def variance(self, z: Array) -> Array:
        return np.asarray(expit(z) * expit(-z))

    def third(self, z: Array) -> Array:
        return np.asarray(expit(z) * expit(-z) * (expit(-z) - expit(z)))

    def slope(self, reach: float) -> float:
        return float(expit(reach))

    def draw(self, z: Array, rng: np.random.Generator) -> Array:
        return np.asarray(rng.random(z.shape) < expit(z), dtype=np.float64)


@final
class Gaussian(GLM):
    """``A(z) = z²/2``: least squares with noise of unit variance."""

    name = "gaussian"
    growth = 2.0

    def partition(self, z: Array) -> Array:
        return 0.5 * z**2

    def mean(self, z: Array) -> Array:
        return np.array(z)

    def variance(self, z: Array) -> Array:
        return np.ones_like(z)

    def third(self, z: Array) -> Array:
        return np.zeros_like(z)

    def slope(self, reach: float) -> float:
        return reach

    def draw(self, z: Array, rng: np.random.Generator) -> Array:
        return z + rng.standard_normal(z.shape)


@final
class Poisson(GLM):
    """``A(z) = exp z``, labels are counts."""

    name = "poisson"
    growth = math.inf

    def partition(self, z: Array) -> Array:
        return np.exp(z)

    def mean(self, z: Array) -> Array:
        return np.exp(z)

    def variance(self, z: Array) -> Array:
        return np.exp(z)

    def third(self, z: Array) -> Array:
        return np.exp(z)

    def slope(self, reach: float) -> float:
        return float(np.exp(reach))

    def draw(self, z: Array, rng: np.random.Generator) -> Array:
        return rng.poisson(np.exp(z)).astype(np.float64)


GLMS: dict[str, GLM] = {model.name: model for model in (Logistic(), Gaussian(), Poisson())}


def glm(name: str) -> GLM:
    """The model of this name.

    >>> glm("gaussian").variance(np.array([0.0, 3.0])).tolist()
    [1.0, 1.0]
    """
    if name not in GLMS:
        raise unknown("generalised linear model", name, GLMS)
    return GLMS[name]
