"""Rates from counts: NumPy in, float out. An empty group has no rate: it is left out, never counted as 0.

Where no group has any example there is no rate at all and the answer is NaN.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def per_group(hits: ArrayLike, sizes: ArrayLike) -> NDArray[np.float64]:
    """Accuracy of every group, [..., groups]; NaN for an empty one.

    >>> per_group([1, 0], [2, 0])
    array([0.5, nan])
    """
    hit, size = np.asarray(hits, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    rates: NDArray[np.float64] = np.full(np.broadcast(hit, size).shape, np.nan)
    return np.divide(hit, size, out=rates, where=size > 0)


def average(hits: ArrayLike, sizes: ArrayLike) -> float:
    """Share of hits among all examples; groups must not overlap.

    >>> average([9, 1], [10, 2])
    0.8333333333333334
    """
    total = np.sum(sizes)
    return float(np.sum(hits) / total) if total else float("nan")


def worst(hits: ArrayLike, sizes: ArrayLike) -> float:
    """Lowest accuracy among the groups that have examples.

    >>> worst([9, 1, 0], [10, 2, 0])
    0.5
    """
    rates = _known(hits, sizes)
    return float(rates.min()) if len(rates) else float("nan")


def group_mean(hits: ArrayLike, sizes: ArrayLike) -> float:
    """Mean accuracy over the groups that have examples, each group counting once.

    >>> group_mean([9, 1], [10, 2])
    0.7
    """
    rates = _known(hits, sizes)
    return float(rates.mean()) if len(rates) else float("nan")


def adjusted(hits: ArrayLike, sizes: ArrayLike, train_sizes: ArrayLike) -> float:
    """Accuracies weighted by the groups' shares of the training split, over the groups that have examples.

    >>> adjusted([9, 1], [10, 2], [300, 100])
    0.8
    """
    rates, share = per_group(hits, sizes), np.asarray(train_sizes, dtype=np.float64)
    is_known = ~np.isnan(rates)
    total = share[is_known].sum()
    return float(rates[is_known] @ share[is_known] / total) if total > 0 else float("nan")


def frontier(worst: ArrayLike, average: ArrayLike) -> NDArray[np.int64]:
    """The numbers of the points that no other point reaches in one rate and beats in the other, by rising average.

    Of equal points the first counts. Points with a rate that is NaN are never on it.

    >>> frontier([0.5, 0.7, 0.6, 0.7], [0.9, 0.8, 0.7, 0.7]).tolist()
    [1, 0]
    """
    low, mean = np.asarray(worst, dtype=np.float64), np.asarray(average, dtype=np.float64)
    places = np.flatnonzero(~(np.isnan(low) | np.isnan(mean)))
    order = places[np.lexsort((places, -low[places], -mean[places]))]  # by falling average, then by falling worst rate
    kept: list[int] = []
    best = -np.inf
    for point in order.tolist():
        if low[point] > best:
            best = low[point]
            kept.append(point)
    return np.array(kept[::-1], dtype=np.int64)


def _known(hits: ArrayLike, sizes: ArrayLike) -> NDArray[np.float64]:
    rates = per_group(hits, sizes)
    return rates[~np.isnan(rates)]
