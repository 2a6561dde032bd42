"""Clusters of uncertain training examples in the features of the trained net, for tasks whose inputs are not columns."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from umix.core.clusters import clusters_within, main_directions
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
    index, correct = closer.index[uncertain], closer.correct[uncertain]
    # Along the main directions: distances in hundreds of features mean little.
    features = main_directions(closer.features[uncertain].astype(np.float64), _WIDTH)
    if not np.ptp(features, axis=0).any():
        return []
    clusters = clusters_within(
        features,
        np.zeros(len(features), dtype=np.int64),
        n_classes=1,
        sizes=range(2, _MOST + 1),
        kind="kmeans",
        average="examples",
        rng=np.random.default_rng(0),  # not a run's stream: a report of the same run is the same report
    )
    found = []
    for number in range(clusters.n_clusters):
        inside = np.flatnonzero(clusters.cluster == number)
        if len(inside) < _SMALLEST:
            continue
        members = index[inside]
        distance = np.linalg.norm(features[inside] - features[inside].mean(axis=0), axis=1)
        nearest = members[np.argsort(distance, kind="stable")[:4]]
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


def _described(training: Training, members: np.ndarray, classes: Sequence[str], groups: Sequence[str]) -> str:
    """The most common label of these examples, and their most common group where it is known. Groups only describe clusters."""
    label, count = Counter(training.label[members].tolist()).most_common(1)[0]
    name = classes[label]
    words = f"{count / len(members):.0%} have {name if name.startswith('label ') else f'the label {name}'}"
    if training.group is not None:
        group, count = Counter(training.group[members].tolist()).most_common(1)[0]
        words += f"; {count / len(members):.0%} are of the group {groups[group]}"
    return words
