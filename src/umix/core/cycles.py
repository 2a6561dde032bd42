"""Mixing partners across domains: every domain of a batch is mixed with the next one in a cycle."""

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]


def partners_in_next(domain: Ids, cycle: Ids) -> Ids:
    """For every example the position of its partner, an example of the next domain of ``cycle`` in the batch, [batch].

    ``domain`` [batch] are the examples' domains, ``cycle`` all domains in the order of the cycle.
    The partner of a domain's k-th example is the k-th example of the next domain; if that has fewer
    examples, counting starts again at its first. If the batch has one domain only, every example is
    its own partner.

    >>> partners_in_next(np.array([0, 2, 0, 2, 0]), cycle=np.array([1, 0, 2]))
    array([1, 0, 3, 2, 1])
    """
    turn = np.argsort(cycle)[domain]
    order = np.argsort(turn, kind="stable")
    ordered = turn[order]
    sizes = np.bincount(turn, minlength=len(cycle))
    ends = sizes.cumsum()
    place = np.arange(len(domain)) - (ends - sizes)[ordered]  # k: position within the example's domain
    following = ends[ordered] % max(len(domain), 1)  # where the next domain begins; the first follows the last
    partner = following + place % sizes[ordered[following]]
    pair = np.empty_like(order)
    pair[order] = order[partner]
    return pair
