"""Mixing partners: a partner for every example of a batch, as positions [batch], or as rows of the whole training split.

An example without a legal partner is its own partner, and mixing leaves it unchanged. Labels and
groups are NumPy arrays, because they are known on the host: nothing is read back from the device,
and small index arithmetic is faster on the host.
"""

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]


def partners(n: int, *, rng: np.random.Generator) -> Ids:
    """A random permutation of the batch, [n]: any example may be paired with any.

    >>> sorted(partners(3, rng=np.random.default_rng(0)).tolist())
    [0, 1, 2]
    """
    return rng.permutation(n)


def partners_within(key: Ids, *, rng: np.random.Generator) -> Ids:
    """A partner with the same ``key`` [batch], uniform among the others that have it.

    Within a key the pairs form one random cycle, so every example is also a partner exactly once.

    >>> partners_within(np.array([5, 7, 5]), rng=np.random.default_rng(0))
    array([2, 1, 0])
    """
    n = len(key)
    order = (key * n + rng.permutation(n)).argsort()  # by key, in random order within a key
    ordered = key[order]
    begins = np.ones(n + 1, dtype=bool)  # whether a key begins at a place of the order; one more begins after its end
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:n])
    (bounds,) = begins.nonzero()
    pair = np.empty_like(order)
    pair[order[:-1]] = order[1:]
    pair[order[bounds[1:] - 1]] = order[bounds[:-1]]  # the last of a key goes back to its first
    return pair


def partners_across(same: Ids, other: Ids, *, rng: np.random.Generator, shape: tuple[int, int] | None = None) -> Ids:
    """A partner with the same ``same`` and another ``other`` (both [batch]), uniform among all that fit, with replacement.

    ``shape`` are the numbers of values that the two may have, if the caller knows them; the partners do not depend on it.

    >>> partners_across(np.array([0, 0, 1]), np.array([0, 1, 1]), rng=np.random.default_rng(0))
    array([1, 0, 2])
    """
    n = len(same)
    if not n:
        return np.zeros(0, dtype=np.int64)
    height, width = shape or (int(same.max()) + 1, int(other.max()) + 1)
    cell = same * width + other
    order = (cell * n + rng.permutation(n)).argsort()
    sizes = np.bincount(cell, minlength=height * width).reshape(height, width)
    ends = sizes.cumsum().reshape(height, width)  # of the cells in the order; a row of the table is one stretch of it
    begins = ends - sizes
    choices = (ends[:, -1:] - begins[:, :1] - sizes).take(cell)
    place = begins[:, 0].take(same) + (rng.random(n) * choices).astype(np.int64)
    place += sizes.take(cell) * (place >= begins.take(cell))  # skip the example's cell
    pair = order.take(place, mode="clip")  # without choices the place may lie after the last one
    return pair if np.count_nonzero(choices) == n else np.where(choices > 0, pair, np.arange(n))


def partners_from_groups(rows: Ids, same: Ids, other: Ids, *, rng: np.random.Generator) -> Ids:
    """A partner for each of ``rows`` [m] among all n examples, as row numbers [m]: the same ``same``, another ``other`` (both [n]).

    First a value of ``other`` is drawn, uniformly among those that fit, then one of its examples. A row without a legal partner is
    its own partner.

    >>> partners_from_groups(np.array([0, 2]), np.array([0, 0, 1]), np.array([0, 1, 1]), rng=np.random.default_rng(0))
    array([1, 2])
    """
    n, width = len(same), int(other.max(initial=0)) + 1
    cell = same * width + other
    order = np.argsort(cell, kind="stable")
    sizes = np.bincount(cell, minlength=(int(same.max(initial=0)) + 1) * width)
    begins = (sizes.cumsum() - sizes).reshape(-1, width)
    sizes = sizes.reshape(-1, width)
    legal = sizes[same[rows]] > 0
    legal[np.arange(len(rows)), other[rows]] = False
    choices = legal.sum(axis=1)
    turn = (rng.random(len(rows)) * choices).astype(np.int64)
    chosen = (legal.cumsum(axis=1) > turn[:, None]).argmax(axis=1)  # the value of ``other`` whose turn it is
    place = begins[same[rows], chosen] + (rng.random(len(rows)) * sizes[same[rows], chosen]).astype(np.int64)
    return np.where(choices > 0, order[np.minimum(place, n - 1)], rows)


def partners_across_halves(n: int) -> Ids:
    """The k-th example of the first half of a batch and the k-th of the second are partners, [n]; a last odd one has none.

    >>> partners_across_halves(5)
    array([2, 3, 0, 1, 4])
    """
    half = n // 2
    pair = np.arange(n)
    pair[:half], pair[half : 2 * half] = np.arange(half, 2 * half), np.arange(half)
    return pair


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
