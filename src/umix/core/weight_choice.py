"""How far to trust uncertainty, judged on validation without group labels: the measures behind ``eta="auto"``."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Rates = NDArray[np.float64]


def early_epochs(rates: Sequence[float]) -> int:
    """How many epochs it takes to learn half of what will be learned, at least 2 where there are as many.

    ``rates`` are training accuracies of the epochs in order. Later on a net knows its training examples by heart, and which of
    them it got wrong says less of where it would fail.

    >>> early_epochs([0.90, 0.93, 0.96, 0.97, 0.99])
    3
    """
    half = (rates[0] + max(rates)) / 2
    reached = next(epoch for epoch, rate in enumerate(rates) if rate >= half)
    return min(len(rates), max(2, reached + 1))


def trial_rates(hits: NDArray[np.int64], sizes: NDArray[np.int64]) -> tuple[Rates, Rates, Rates]:
    """Rates of every epoch, [epochs] each: the three that a score is the mean of [3, epochs], their mean, and the average.

    ``hits`` [epochs, 2, classes] and ``sizes`` [2, classes] count validation examples that the first stage was certain of and
    uncertain of, by class. The three are the accuracy on the certain, on the uncertain, and of the worst class. Weighing examples
    up because they were wrong wins on the uncertain what it loses on the certain where labels are noise, and more where there is
    something to learn; the worst class keeps a small class from paying for it. What has no examples has no rate and is left out.

    >>> hits, sizes = np.array([[[8, 4], [1, 2]]]), np.array([[10, 5], [2, 4]])
    >>> parts, score, average = trial_rates(hits, sizes)
    >>> parts[:, 0].round(2).tolist(), average.round(2).tolist()
    ([0.8, 0.5, 0.67], [0.71])
    """
    by_trust, by_class = hits.sum(axis=2), hits.sum(axis=1)
    trust_sizes, class_sizes = sizes.sum(axis=1), sizes.sum(axis=0)
    known = class_sizes > 0
    parts = np.full((3, len(hits)), np.nan)
    for trust in (0, 1):
        if trust_sizes[trust]:
            parts[trust] = by_trust[:, trust] / trust_sizes[trust]
    if known.any():
        parts[2] = (by_class[:, known] / class_sizes[known]).min(axis=1)
    present = ~np.isnan(parts[:, 0]) if len(hits) else np.ones(3, dtype=bool)
    score = parts[present].mean(axis=0) if present.any() else np.full(len(hits), np.nan)
    return parts, score, hits.sum(axis=(1, 2)) / max(1, int(sizes.sum()))
