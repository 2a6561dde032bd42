"""A weighted sample: inputs, labels, importance weights, and the probabilities of mixing partners."""

from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np

from umix.errors import UserError
from umix.theory.glm import Array


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

    def __post_init__(self) -> None:
        n = len(self.x)
        shapes = {"x": self.x.shape, "y": self.y.shape, "w": self.w.shape, "partner": self.partner.shape}
        if self.x.ndim != 2 or n == 0 or any(shapes[name] != (n,) for name in ("y", "w", "partner")):
            raise UserError(f"A sample must have x of shape [n, d] and y, w, partner of shape [n], got {shapes}.")
        if not all(np.isfinite(values).all() for values in (self.x, self.y, self.w, self.partner)):
            raise UserError("A sample must hold finite numbers, got NaN or infinity; drop those rows.")
        if (self.w < 0).any() or (self.partner < 0).any() or not np.isclose(self.partner.sum(), 1):
            raise UserError("A sample's weights must be at least 0, and its partner probabilities must add up to 1.")

    def by_weight(self) -> Self:
        """The same rows with partners drawn in proportion to their weights (the ``D_x^w`` of the printed proof)."""
        return replace(self, partner=self.w / self.w.sum())

    def centred(self) -> Self:
        """The same sample moved so that the mean partner, ``Σ_j partner_j x_j``, is 0."""
        return replace(self, x=self.x - self.partner @ self.x)

    def off_centre(self) -> float:
        """Length of the mean partner, relative to the root mean square length of the rows."""
        scale = float(np.sqrt(np.mean(np.sum(self.x**2, axis=1))))
        return float(np.linalg.norm(self.partner @ self.x)) / scale if scale > 0 else 0.0

    def partner_covariance(self) -> Array:
        """``Σ_j partner_j x_j x_jᵀ``, the Σ of the regulariser of lemma A.2."""
        return np.asarray((self.x * self.partner[:, None]).T @ self.x)
