"""What a race is judged by where no groups may be used."""

import numpy as np

from umix.core.epoch_counts import Counts
from umix.core.rates import per_group
from umix.core.selection import Scores

#: The share of wrong epochs from which on a validation example is called uncertain.
UNCERTAIN = 0.5


def trust_scores(every: Counts, uncertain_hits: np.ndarray, n_uncertain: int) -> Scores:
    """How well an epoch does where a first stage was certain, where it was uncertain, and in the worst class, [epochs].

    The mean of the three rates. Larger weights on misclassified examples raise the accuracy on uncertain examples. If labels are
    noise, the accuracy on certain examples falls by as much; if there is something to learn, by less. The worst class guards a
    small class against paying for it. Parts without examples are left out.

    ``every`` counts validation examples by class, ``uncertain_hits`` [epochs] those of which the first stage was uncertain.

    >>> hits, sizes = np.array([[12, 2]]), np.array([15, 5])
    >>> trust_scores(Counts(hits[:, :0], sizes[:0], hits, sizes), np.array([1]), 4).round(3).tolist()  # 13/16, 1/4, 2/5
    [0.488]
    """
    if not every.n:
        return np.full(every.epochs, np.nan)
    known = every.class_sizes > 0
    parts = [per_group(every.class_hits[:, known], every.class_sizes[known]).min(axis=1)]
    if n_uncertain:
        parts.append(uncertain_hits / n_uncertain)
    if every.n > n_uncertain:
        parts.append((every.all_hits - uncertain_hits) / (every.n - n_uncertain))
    score: Scores = np.mean(parts, axis=0)
    return score
