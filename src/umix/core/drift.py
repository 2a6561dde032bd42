"""How far rows have moved between two samples, counted in the same bins."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2_contingency

#: The share of rows from which on a move is large, if it is also certain.
LARGE = 0.1
#: The chance of so uneven counts without any move, over all columns that are compared, below which a move is certain.
CERTAIN = 0.01
#: The chi-squared distribution holds only where so many rows are expected in every bin (Cochran 1954).
EXPECTED = 5


@final
@dataclass(frozen=True)
class Drift:
    """How far the rows of a sample have moved against a reference.

    ``moved`` is half the sum of the absolute differences of the bins' shares (the total variation distance): the share of rows
    that would have to lie in another bin for the two to agree. ``p_value`` is that of the chi-squared test of equal shares,
    with the rarest bins put together until each is expected to have ``EXPECTED`` rows in both samples; 1 where one bin is left.
    ``bin`` is the one whose share has changed most, ``before`` in the reference and ``after`` in the sample.
    """

    moved: float
    p_value: float
    bin: int
    before: float
    after: float

    def is_large(self, n_compared: int = 1) -> bool:
        """Whether the move is large and certain; the chance is shared by ``n_compared`` columns (Bonferroni)."""
        return self.moved >= LARGE and self.p_value * n_compared < CERTAIN


def drift(reference: ArrayLike, sample: ArrayLike) -> Drift:
    """The drift of ``sample`` against ``reference``, counts of rows in the same bins, [bins] each; both have rows.

    >>> drift([50, 50, 0], [40, 50, 10]).moved
    0.1
    """
    counts = np.array([reference, sample], dtype=np.int64)
    before, after = counts / counts.sum(axis=1, keepdims=True)
    change = np.abs(after - before)
    most = int(change.argmax())
    return Drift(round(float(change.sum() / 2), 12), _p_value(counts), most, float(before[most]), float(after[most]))


def _p_value(counts: NDArray[np.int64]) -> float:
    """The chance of so uneven ``counts`` [2, bins] if both rows have the same shares."""
    of_bins = counts.sum(axis=0)
    rising = counts[:, np.argsort(of_bins, kind="stable")]
    expected = np.cumsum(np.sort(of_bins)) * counts.sum(axis=1).min() / counts.sum()
    together = int(np.searchsorted(expected, EXPECTED))  # the bins before this one, and this one, are tested as one
    pooled = np.column_stack([rising[:, : together + 1].sum(axis=1), rising[:, together + 1 :]])
    return float(chi2_contingency(pooled, correction=False).pvalue) if pooled.shape[1] > 1 else 1.0
