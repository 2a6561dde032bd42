"""Who is mixed with whom across domains: every domain of a batch with the next one in a cycle."""

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]


def partners_in_next(domain: Ids, cycle: Ids) -> Ids:
    """For every example the position of one in the next domain of ``cycle`` that the batch has, as positions [batch].

    ``domain`` [batch] are the domains, ``cycle`` all of them in the order of the cycle. The k-th example of a domain meets the k-th
    of the next one, counting on from the first where that has fewer. The examples of an only domain are their own partners.

    >>> partners_in_next(np.array([0, 2, 0, 2, 0]), cycle=np.array([1, 0, 2]))
    array([1, 0, 3, 2, 1])
    """
    turn = np.argsort(cycle)[domain]
    order = np.argsort(turn, kind="stable")
    ordered = turn[order]
    sizes = np.bincount(turn, minlength=len(cycle))
    ends = sizes.cumsum()
    place = np.arange(len(domain)) - (ends - sizes)[ordered]  # within the own domain
    following = ends[ordered] % max(len(domain), 1)  # where the next domain begins; after the last comes the first
    partner = following + place % sizes[ordered[following]]
    pair = np.empty_like(order)
    pair[order] = order[partner]
    return pair
