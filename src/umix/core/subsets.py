"""Rows drawn by group: a split that keeps the groups' shares, and a subset that makes them equal."""

import numpy as np


def stratified_split(group: np.ndarray, *, share: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a random ``share`` of every group, and all other rows, both in order.

    A group of two or more has rows in both; a lone example is among the first.

    >>> first, rest = stratified_split(np.array([0, 0, 0, 0, 7]), share=0.5, rng=np.random.default_rng(0))
    >>> len(first), len(rest), 4 in first
    (3, 2, True)
    """
    order = np.argsort(group, kind="stable")  # group after group: one sort, however many groups
    begins = np.flatnonzero(np.diff(group[order])) + 1
    first = np.zeros(len(group), dtype=bool)
    for members in np.split(order, begins):
        rows = rng.permutation(members)
        first[rows[: min(max(1, round(share * len(rows))), max(1, len(rows) - 1))]] = True
    return np.flatnonzero(first), np.flatnonzero(~first)


def balanced_subset(group: np.ndarray, *, rng: np.random.Generator) -> np.ndarray:
    """Random rows, as many of every group as the smallest has, group after group; groups without rows are left out.

    >>> balanced_subset(np.array([0, 2, 2, 2]), rng=np.random.default_rng(0)).shape
    (2,)
    """
    present, sizes = np.unique(group, return_counts=True)
    return np.concatenate([rng.permutation(np.flatnonzero(group == g))[: sizes.min()] for g in present])
