"""Measures behind ``eta="auto"``, which chooses the weight of uncertainty on validation without group labels."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Rates = NDArray[np.float64]


def early_epochs(rates: Sequence[float]) -> int:
    """The number of epochs until training accuracy has made half of its way from the first epoch to its maximum, at least 2.

    ``rates`` are the training accuracies of the epochs in order. In later epochs the net has
    memorised its training examples, and its mistakes say less about where it would fail. The result
    is never more than the number of epochs.

    >>> early_epochs([0.90, 0.93, 0.96, 0.97, 0.99])
    3
    """
    half = (rates[0] + max(rates)) / 2
    reached = next(epoch for epoch, rate in enumerate(rates) if rate >= half)
    return min(len(rates), max(2, reached + 1))


def trial_rates(hits: NDArray[np.int64], sizes: NDArray[np.int64]) -> tuple[Rates, Rates, Rates]:
    """Rates of every epoch: three parts [3, epochs], the score [epochs], which is their mean, and the average [epochs].

    ``hits`` [epochs, 2, classes] and ``sizes`` [2, classes] count validation examples by class,
    first those that the first stage was certain of, then those that it was uncertain of. The three
    parts are the accuracy on certain examples, on uncertain examples, and of the worst class. Larger
    weights on misclassified examples raise the accuracy on uncertain examples. If labels are noise,
    the accuracy on certain examples falls by as much; if there is something to learn, by less. The
    worst class guards a small class against paying for it. Parts without examples are NaN and are
    left out of the score.

    >>> hits, sizes = np.array([[[8, 4], [1, 2]]]), np.array([[10, 5], [2, 4]])
    >>> parts, score, average = trial_rates(hits, sizes)
    >>> parts[:, 0].round(2).tolist(), average.round(2).tolist()
    ([0.8, 0.5, 0.67], [0.71])
    """
    by_trust, by_class = hits.sum(axis=2), hits.sum(axis=1)
    trust_sizes, class_sizes = sizes.sum(axis=1), sizes.sum(axis=0)
    nonempty = class_sizes > 0
    parts = np.full((3, len(hits)), np.nan)
    for trust in (0, 1):
        if trust_sizes[trust]:
            parts[trust] = by_trust[:, trust] / trust_sizes[trust]
    if nonempty.any():
        parts[2] = (by_class[:, nonempty] / class_sizes[nonempty]).min(axis=1)
    present = ~np.isnan(parts[:, 0]) if len(hits) else np.ones(3, dtype=bool)
    score = parts[present].mean(axis=0) if present.any() else np.full(len(hits), np.nan)
    return parts, score, hits.sum(axis=(1, 2)) / max(1, int(sizes.sum()))
