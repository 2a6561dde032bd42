"""The frontier of two rates: the points that no other point beats in both."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def frontier(worst: ArrayLike, average: ArrayLike) -> NDArray[np.int64]:
    """The numbers of the points that no other point reaches in one rate and beats in the other, by rising average.

    Of equal points the first counts. Points with a rate that is NaN are never on it.

    >>> frontier([0.5, 0.7, 0.6, 0.7], [0.9, 0.8, 0.7, 0.7]).tolist()
    [1, 0]
    """
    low, mean = np.asarray(worst, dtype=np.float64), np.asarray(average, dtype=np.float64)
    known = np.flatnonzero(~(np.isnan(low) | np.isnan(mean)))
    order = known[np.lexsort((known, -low[known], -mean[known]))]  # by falling average, then by falling worst rate
    found: list[int] = []
    best = -np.inf
    for point in order.tolist():
        if low[point] > best:
            best = low[point]
            found.append(point)
    return np.array(found[::-1], dtype=np.int64)
