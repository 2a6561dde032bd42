"""Rows drawn by group: a split or folds that keep the groups' shares, a subset that makes them equal, and one that grows."""

import math

import numpy as np


def stratified_split(group: np.ndarray, *, share: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a random ``share`` of every group, and all other rows, both in order.

    A group of two or more examples has rows in both. The example of a group of one is in the first.

    >>> first, rest = stratified_split(np.array([0, 0, 0, 0, 7]), share=0.5, rng=np.random.default_rng(0))
    >>> len(first), len(rest), 4 in first
    (3, 2, True)
    """
    order = np.argsort(group, kind="stable")  # rows sorted by group
    begins = np.flatnonzero(np.diff(group[order])) + 1
    first = np.zeros(len(group), dtype=bool)
    for members in np.split(order, begins):
        rows = rng.permutation(members)
        first[rows[: min(max(1, round(share * len(rows))), max(1, len(rows) - 1))]] = True
    return np.flatnonzero(first), np.flatnonzero(~first)


def balanced_subset(group: np.ndarray, *, rng: np.random.Generator) -> np.ndarray:
    """Random rows, sorted by group: of every group as many as the smallest group has; empty groups are ignored.

    >>> balanced_subset(np.array([0, 2, 2, 2]), rng=np.random.default_rng(0)).shape
    (2,)
    """
    present, sizes = np.unique(group, return_counts=True)
    return np.concatenate([rng.permutation(np.flatnonzero(group == g))[: sizes.min()] for g in present])


def stratified_folds(group: np.ndarray, *, folds: int, rng: np.random.Generator) -> np.ndarray:
    """A fold of 0 … folds-1 for every row, int64 [n]: folds have the groups' shares, and their sizes differ by at most one.

    >>> stratified_folds(np.array([0, 0, 1, 1]), folds=2, rng=np.random.default_rng(0)).reshape(2, 2).sum(axis=1).tolist()
    [1, 1]
    """
    order = rng.permutation(len(group))
    order = order[np.argsort(group[order], kind="stable")]  # by group, shuffled inside: dealt out in turn
    fold = np.empty(len(group), dtype=np.int64)
    fold[order] = (np.arange(len(group)) + rng.integers(folds)) % folds
    return fold


def balanced_first(group: np.ndarray, *, most: int | None = None, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """All rows in random order but for the first ones, int64 [n], and the number of these: a balanced subset.

    It has ``most`` rows of every group, by default as many as the smallest group has; a group with fewer rows has all of them
    there. Empty groups are ignored.

    >>> order, first = balanced_first(np.array([0, 2, 2, 2]), rng=np.random.default_rng(0))
    >>> first, sorted(order.tolist())
    (2, [0, 1, 2, 3])
    """
    present, sizes = np.unique(group, return_counts=True)
    most = int(sizes.min(initial=len(group))) if most is None else most
    chosen = np.zeros(len(group), dtype=bool)
    for g in present:
        chosen[rng.permutation(np.flatnonzero(group == g))[:most]] = True
    first, rest = np.flatnonzero(chosen), rng.permutation(np.flatnonzero(~chosen))
    return np.concatenate([first, rest]), len(first)


def grown_size(progress: float, *, first: int, total: int, warm_up: float, added: float, expansions: int) -> int:
    """How many of ``total`` rows are in a growing subset when ``progress`` of a fit, from 0 to 1, is done.

    There are ``first`` until ``warm_up``. From then on a share ``added`` of the others is added in so many equal ``expansions``,
    the first at once and the next ones in equal distances up to the end.

    >>> [grown_size(t / 8, first=4, total=20, warm_up=0.5, added=0.5, expansions=4) for t in range(8)]
    [4, 4, 4, 4, 6, 8, 10, 12]
    """
    if progress < warm_up or warm_up >= 1:
        return first
    begun = math.floor((progress - warm_up) / (1 - warm_up) * expansions + 1e-9) + 1
    return first + round(added * (total - first) * min(begun, expansions) / expansions)
