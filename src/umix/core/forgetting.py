"""Forgetting events: how often a model has unlearned an example (Toneva et al. 2019)."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.bool_]


def forgetting_events(epochs: Iterable[tuple[Bits, Bits]], *, n: int) -> NDArray[np.int64]:
    """How often each of ``n`` examples was predicted wrongly after its previous visit was predicted correctly, [n].

    ``epochs`` gives, epoch by epoch, whether each example was predicted correctly and whether it was visited, bool [n].

    >>> right, wrong = np.array([True]), np.array([False])
    >>> forgetting_events([(right, right), (wrong, right), (wrong, right)], n=1)
    array([1])
    """
    events, last_correct = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=bool)
    for correct, visited in epochs:
        events += visited & last_correct & ~correct
        last_correct = np.where(visited, correct, last_correct)
    return events
