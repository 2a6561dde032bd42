"""Clusters of uncertain training examples in the features of the trained net, for tasks whose inputs are not columns."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from umix.core.kmeans import distances, kmeans, silhouette
from umix.reports.training_examples import Training

_FEWEST = 24  # uncertain examples, below which there is nothing to cluster
_SMALLEST = 6
_WIDTH = 16
_MOST = 6


@final
@dataclass(frozen=True)
class Cluster:
    """``size`` of the ``measured`` uncertain training examples.

    ``error`` is the share that the net after its last epoch gets wrong. ``examples`` are the indices of those nearest
    to the centre.
    """

    description: str
    size: int
    measured: int
    uncertainty: float
    error: float
    examples: tuple[int, ...]


def feature_clusters(training: Training, classes: Sequence[str], groups: Sequence[str]) -> list[Cluster]:
    """Clusters of the uncertain training examples whose features were kept, the most uncertain first.

    The number of clusters is the one with the best silhouette.
    """
    closer = training.closer
    if closer is None:
        return []
    u = training.uncertainty[closer.index]
    uncertain = u >= max(np.median(training.uncertainty), 1e-9)
    uncertain &= u >= np.quantile(u, 0.5)  # half of the kept examples were drawn at random
    if uncertain.sum() < _FEWEST:
        return []
    index, correct, features = closer.index[uncertain], closer.correct[uncertain], _reduced(closer.features[uncertain])
    if not np.ptp(features, axis=0).any():
        return []
    cluster, distance = _clustered(features)
    found = []
    for number in range(int(cluster.max()) + 1):
        inside = np.flatnonzero(cluster == number)
        if len(inside) < _SMALLEST:
            continue
        members = index[inside]
        nearest = members[np.argsort(distance[inside], kind="stable")[:4]]
        found.append(
            Cluster(
                description=_described(training, members, classes, groups),
                size=len(inside),
                measured=len(index),
                uncertainty=float(training.uncertainty[members].mean()),
                error=float(1 - correct[inside].mean()),
                examples=tuple(nearest.tolist()),
            )
        )
    return sorted(found, key=lambda cluster: (-cluster.uncertainty, -cluster.size))


def _reduced(features: np.ndarray) -> np.ndarray:
    """The features along their main directions: distances in hundreds of them mean little."""
    centred = features.astype(np.float64) - features.mean(axis=0)
    width = min(_WIDTH, *centred.shape)
    left, scale, _ = np.linalg.svd(centred, full_matrices=False)
    return np.asarray(left[:, :width] * scale[:width])


def _clustered(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cluster of every example and its distance to the centre, for the number of clusters with the best silhouette."""
    n_distinct = len(np.unique(features.round(9), axis=0))
    best: tuple[float, np.ndarray, np.ndarray] = (
        -2.0,
        np.zeros(len(features), dtype=np.int64),
        np.zeros(len(features)),
    )
    apart = distances(features)
    for size in range(2, min(_MOST, n_distinct - 1) + 1):
        cluster, distance = kmeans(features, size, starts=3)
        score = silhouette(apart, cluster)
        if score > best[0]:
            best = (score, cluster, distance)
    return best[1], best[2]


def _described(training: Training, members: np.ndarray, classes: Sequence[str], groups: Sequence[str]) -> str:
    """The most common label of these examples, and their most common group where it is known. Groups only describe clusters."""
    label, count = Counter(training.label[members].tolist()).most_common(1)[0]
    name = classes[label]
    words = f"{count / len(members):.0%} have {name if name.startswith('label ') else f'the label {name}'}"
    if training.group is not None:
        group, count = Counter(training.group[members].tolist()).most_common(1)[0]
        words += f"; {count / len(members):.0%} are of the group {groups[group]}"
    return words
