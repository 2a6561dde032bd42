"""Clusters of examples within classes, by k-means or a mixture of Gaussians, and how many of them there are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from umix.core.quiet_fit import quiet_fit

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
Kind = Literal["kmeans", "gmm"]
#: What counts the same in the silhouette of a clustering: every cluster or every example.
Average = Literal["clusters", "examples"]

TRIED = range(2, 11)  # numbers of clusters to choose from
SAMPLE = 2000  # examples between which distances are computed for a silhouette: their number grows with the square
_STARTS = 3  # of which the best is kept; a mixture starts from k-means


@final
@dataclass(frozen=True, eq=False)
class Clusters:
    """The cluster of every example, numbered class by class and within a class by size, the largest first."""

    cluster: Ids  # [n]
    n_clusters: int
    silhouette: Floats  # [classes], from -1 to 1; NaN where a class has one cluster or no examples


def clusters_within(
    z: Floats,
    y: Ids,
    *,
    n_classes: int,
    sizes: Sequence[int],
    kind: Kind,
    average: Average,
    rng: np.random.Generator,
    sample: int = SAMPLE,
) -> Clusters:
    """The examples of each class, with features ``z`` [n, width], in as many clusters as have the largest silhouette.

    ``sizes`` are the numbers of clusters to choose from; one of them is taken as it is. A class is never divided into more clusters
    than it has different examples, and only if one cluster has two examples. So a class of one or two examples, or of equal ones,
    is one cluster. ``sample`` limits the examples that a silhouette is computed from.

    >>> z = np.array([[0.0], [0.1], [5.0], [5.1], [0.0], [0.0]])
    >>> found = clusters_within(
    ...     z, np.array([0, 0, 0, 0, 1, 1]), n_classes=2, sizes=[2, 3], kind="kmeans", average="examples",
    ...     rng=np.random.default_rng(0),
    ... )
    >>> found.n_clusters, len(set(found.cluster[:4])), found.cluster[4:]
    (3, 2, array([2, 2]))
    """
    if not np.isfinite(z).all():
        raise ValueError(
            f"Features must be finite to be clustered, got {int((~np.isfinite(z)).any(axis=1).sum())} rows that are not."
        )
    cluster, silhouettes, begin = np.zeros(len(z), dtype=np.int64), np.full(n_classes, np.nan), 0
    for c in range(n_classes):
        rows = np.flatnonzero(y == c)
        if not len(rows):
            continue
        with threadpool_limits(1):  # sums must not depend on the number of threads
            of_class, silhouettes[c] = _chosen(z[rows], sizes, kind, average, rng, sample)
        cluster[rows] = begin + of_class
        begin += int(of_class.max()) + 1
    return Clusters(cluster, begin, silhouettes)


def _chosen(
    z: Floats, sizes: Sequence[int], kind: Kind, average: Average, rng: np.random.Generator, sample: int
) -> tuple[Ids, float]:
    """The clusters of one class's examples with the largest silhouette, and this silhouette."""
    most = min(_distinct(z, max(sizes)), len(z) - 1)
    best: tuple[Ids, float] = np.zeros(len(z), dtype=np.int64), np.nan
    for size in sorted({min(size, most) for size in sizes}):
        if size < 2:
            continue
        cluster = clustered(z, size, kind=kind, rng=rng)
        if cluster.max() == 0:
            continue
        value = silhouette(z, cluster, average=average, rng=rng, sample=sample)
        if not value <= best[1]:  # the first is compared with NaN
            best = cluster, value
    return best


def clustered(z: Floats, size: int, *, kind: Kind, rng: np.random.Generator) -> Ids:
    """At most ``size`` clusters of ``z`` [n, width], numbered by size, the largest first; int64 [n]."""
    from sklearn.cluster import KMeans  # imported here because it takes a second
    from sklearn.mixture import GaussianMixture

    spread = np.sqrt(z.var(axis=0).max())
    scaled = (z - z.mean(axis=0)) / (spread if spread > 0 else 1.0)  # constants of a mixture suit deviations of about 1
    seed = int(rng.integers(2**31))
    model = (
        KMeans(size, n_init=_STARTS, random_state=seed)
        if kind == "kmeans"
        else GaussianMixture(size, n_init=_STARTS, reg_covar=1e-6, random_state=seed)
    )
    with quiet_fit():  # clusters of a fit that could be better are clusters still
        labels = model.fit_predict(scaled)
    _, label, count = np.unique(labels, return_inverse=True, return_counts=True)
    place = np.empty(len(count), dtype=np.int64)
    place[np.argsort(-count, kind="stable")] = np.arange(len(count))
    return place[label.reshape(-1)]


def silhouette(z: Floats, cluster: Ids, *, average: Average, rng: np.random.Generator, sample: int = SAMPLE) -> float:
    """How well ``z`` [n, width] fits its at least two clusters, from -1 to 1: the mean of (b − a) / max(a, b).

    a is the mean distance of an example to its own cluster, b that to the nearest other one. With ``average=clusters`` it is the
    mean of the clusters' means. If there are more than ``sample`` examples, equal numbers are drawn from all clusters: the mean
    distances to clusters, and the means of clusters, are then estimated without bias.
    """
    from sklearn.metrics import silhouette_samples

    sizes = np.bincount(cluster)
    rows = np.arange(len(z))
    if len(z) > sample:
        most = max(2, sample // len(sizes))
        order = rng.permutation(len(z))
        rows = np.concatenate([order[cluster[order] == c][:most] for c in range(len(sizes))])
    if len(rows) <= len(sizes):  # each is alone in its cluster, and has no silhouette
        return 0.0
    each = silhouette_samples(z[rows], cluster[rows])
    means = np.bincount(cluster[rows], weights=each) / np.bincount(cluster[rows])
    return float(means.mean() if average == "clusters" else sizes @ means / sizes.sum())


def main_directions(z: Floats, width: int) -> Floats:
    """``z`` [n, features] along the ``width`` directions in which it varies most, [n, at most width]."""
    centred = z - z.mean(axis=0)
    width = min(width, *centred.shape)
    with threadpool_limits(1):
        if len(z) < z.shape[1]:
            values, vectors = np.linalg.eigh(centred @ centred.T)
            return np.asarray(vectors[:, ::-1][:, :width] * np.sqrt(values[::-1][:width].clip(min=0)))
        _, vectors = np.linalg.eigh(centred.T @ centred)
        return np.asarray(centred @ vectors[:, ::-1][:, :width])


def main_directions_within(z: Floats, y: Ids, *, n_classes: int, width: int) -> Floats:
    """The ``main_directions`` of every class's examples, [n, width]; those that a small class does not have are 0."""
    reduced = np.zeros((len(z), width))
    for c in range(n_classes):
        rows = np.flatnonzero(y == c)
        if len(rows):
            of_class = main_directions(z[rows], width)
            reduced[rows, : of_class.shape[1]] = of_class
    return reduced


def _distinct(z: Floats, most: int) -> int:
    """The number of different rows of ``z``, but not more than ``most``."""
    count = 0
    while len(z) and count < most:
        z, count = z[(z != z[0]).any(axis=1)], count + 1
    return count
