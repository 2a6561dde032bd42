"""k-means and the silhouette of a clustering in NumPy: for a few thousand examples, without importing scikit-learn.

The starts are drawn as scikit-learn's ``KMeans`` draws them, so both find the same clusters.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

_MOST_STEPS = 300
_TOLERANCE = 1e-4  # of the mean variance: centres that move less have come to rest


def kmeans(z: Floats, size: int, *, starts: int, seed: int = 0) -> tuple[Ids, Floats]:
    """The cluster of every row of ``z`` [n, width], int64 [n], and its distance to the centre, [n].

    The best of so many ``starts``: each begins with ``size`` rows that lie apart (k-means++) and moves centres to the means of
    their rows until they rest.

    >>> cluster, distance = kmeans(np.array([[0.0], [0.2], [5.0], [5.2]]), 2, starts=3)
    >>> cluster[0] == cluster[1] != cluster[2] == cluster[3], distance.round(3).tolist()
    (np.True_, [0.1, 0.1, 0.1, 0.1])
    """
    rng = np.random.RandomState(seed)
    centred = z - z.mean(axis=0)
    found = [_rested(centred, _apart(centred, size, rng)) for _ in range(starts)]
    totals = [float(squares.sum()) for _, squares in found]
    # Equal clusters have sums that differ by rounding errors.
    first = next(place for place, total in enumerate(totals) if total <= min(totals) * (1 + 1e-12))
    cluster, squares = found[first]
    return cluster, np.sqrt(squares)


def _apart(z: Floats, size: int, rng: np.random.RandomState) -> Floats:
    """``size`` rows, each but the first the best of some that were drawn in proportion to their squared distance to the others."""
    tries = 2 + int(np.log(size))
    chosen = [int(rng.choice(len(z), p=np.full(len(z), 1 / len(z))))]
    nearest = _squares(z, z[chosen])[:, 0]
    for _ in range(1, size):
        drawn = np.searchsorted(np.cumsum(nearest), rng.uniform(size=tries) * nearest.sum()).clip(max=len(z) - 1)
        after = np.minimum(nearest[:, None], _squares(z, z[drawn]))
        best = int(after.sum(axis=0).argmin())
        chosen.append(int(drawn[best]))
        nearest = after[:, best]
    return z[chosen]


def _rested(z: Floats, centres: Floats) -> tuple[Ids, Floats]:
    """The cluster of every row and its squared distance to the centre, once the ``centres`` have come to rest."""
    rest = _TOLERANCE * z.var(axis=0).mean()
    before = None
    for _ in range(_MOST_STEPS):
        squares = _squares(z, centres)
        cluster = squares.argmin(axis=1)
        moved = _means(z, cluster, squares.min(axis=1), len(centres))
        still = before is not None and np.array_equal(cluster, before)
        if still or ((moved - centres) ** 2).sum() <= rest:
            centres = moved
            break
        centres, before = moved, cluster
    squares = _squares(z, centres)
    return squares.argmin(axis=1), squares.min(axis=1)


def _means(z: Floats, cluster: Ids, squares: Floats, size: int) -> Floats:
    """The mean of every cluster; an empty one gets the row that is farthest from its centre."""
    counts = np.bincount(cluster, minlength=size)
    for empty in np.flatnonzero(counts == 0):
        cluster, squares = cluster.copy(), squares.copy()
        far = int(squares.argmax())
        cluster[far], squares[far] = empty, 0.0
        counts = np.bincount(cluster, minlength=size)
    sums = (cluster[None, :] == np.arange(size)[:, None]).astype(np.float64) @ z
    return np.asarray(sums / np.maximum(counts, 1)[:, None])


def _squares(z: Floats, others: Floats) -> Floats:
    """Squared distances, [n, others]."""
    found = (z**2).sum(axis=1)[:, None] + (others**2).sum(axis=1)[None, :] - 2 * z @ others.T
    return np.asarray(np.maximum(found, 0.0))


def distances(z: Floats) -> Floats:
    """The distance between every two rows of ``z``, [n, n]."""
    found = np.sqrt(_squares(z, z))
    np.fill_diagonal(found, 0.0)
    return found


def silhouette(apart: Floats, cluster: Ids) -> float:
    """The mean of (b − a) / max(a, b) over all rows, from -1 to 1, from the distances ``apart`` [n, n] between them.

    a is the mean distance to the other rows of the own cluster, b that to the nearest other cluster; a row that is alone in its
    cluster counts 0.

    >>> round(silhouette(distances(np.array([[0.0], [1.0], [9.0], [10.0]])), np.array([0, 0, 1, 1])), 3)
    0.889
    """
    counts = np.bincount(cluster)
    sums = apart @ (cluster[:, None] == np.arange(len(counts))[None, :])  # to all rows of each cluster, [n, clusters]
    rows, own = np.arange(len(cluster)), counts[cluster]
    a = sums[rows, cluster] / np.maximum(own - 1, 1)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.inf)
    means[rows, cluster] = np.inf
    b = means.min(axis=1)
    widest = np.maximum(a, b)
    each = np.divide(b - a, widest, out=np.zeros_like(a), where=(own > 1) & (widest > 0))
    return float(each.mean())
