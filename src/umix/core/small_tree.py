"""A small decision tree in NumPy, for a few questions about data: scikit-learn's, without importing it, which takes a second.

Splits minimise the Gini impurity. For two classes that is the squared error of a regression on 0 and 1.
"""

import heapq
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float32]
Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

_EQUAL = 1e-7  # numbers that are closer are not divided
_AT_ONCE = 2**18  # numbers that are sorted at once


@final
@dataclass(eq=False)
class Tree:
    """The nodes of a tree, the root first: rows whose ``feature`` is at most ``threshold`` go ``below``, the others ``above``.

    A leaf goes nowhere: -1. Of the ``n`` fitted rows of a node ``hits`` have its ``label``, the most frequent class, of equal ones
    the first.
    """

    n: list[int] = field(default_factory=list)
    label: list[int] = field(default_factory=list)
    hits: list[int] = field(default_factory=list)
    feature: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    below: list[int] = field(default_factory=list)
    above: list[int] = field(default_factory=list)

    def predict(self, x: Numbers) -> Ids:
        """The label of the leaf of every row of ``x`` [n, features]."""
        found = np.empty(len(x), dtype=np.int64)
        waiting = [(0, np.arange(len(x)))]
        while waiting:
            node, rows = waiting.pop()
            if self.below[node] < 0:
                found[rows] = self.label[node]
                continue
            small = x[rows, self.feature[node]] <= self.threshold[node]
            waiting += [(self.below[node], rows[small]), (self.above[node], rows[~small])]
        return found

    def add(self, counts: Ids) -> int:
        """The number of a new leaf with so many rows of each class."""
        self.n.append(int(counts.sum()))
        self.label.append(int(counts.argmax()))
        self.hits.append(int(counts.max()))
        self.feature.append(-1)
        self.threshold.append(float("nan"))
        self.below.append(-1)
        self.above.append(-1)
        return len(self.n) - 1


@final
@dataclass(frozen=True, eq=False)
class _Split:
    """``gain`` is by how much the impurity of all rows falls."""

    feature: int
    threshold: float
    gain: float


def grow(x: Numbers, y: Ids, *, min_leaf: int, max_depth: int | None = None, max_leaves: int | None = None) -> Tree:
    """A tree that tells the classes ``y`` [n] of the rows ``x`` [n, features]; every leaf has at least ``min_leaf`` rows.

    Where the number of leaves is limited, the split that gains the most comes first. Of equal splits that of the first feature is
    taken whose larger numbers go with the higher classes.

    >>> tree = grow(np.array([[0], [1], [2], [3]], dtype=np.float32), np.array([0, 0, 1, 1]), min_leaf=1)
    >>> tree.threshold[0], tree.predict(np.array([[1.4], [1.6]], dtype=np.float32)).tolist()
    (1.5, [0, 1])
    """
    n_classes, tree, order = int(y.max()) + 1, Tree(), 0
    frontier: list[tuple[float, int, int, int, Ids, _Split]] = []  # the largest gain first, then the oldest

    def add(rows: Ids, depth: int) -> int:
        nonlocal order
        counts = np.bincount(y[rows], minlength=n_classes)
        node = tree.add(counts)
        split = None if depth == max_depth else _best_split(x, y, rows, counts, min_leaf)
        if split is not None:
            heapq.heappush(frontier, (-split.gain, order, node, depth, rows, split))
            order += 1
        return node

    add(np.arange(len(y)), 0)
    leaves = 1
    while frontier and (max_leaves is None or leaves < max_leaves):
        _, _, node, depth, rows, split = heapq.heappop(frontier)
        small = x[rows, split.feature] <= split.threshold
        tree.feature[node], tree.threshold[node] = split.feature, split.threshold
        tree.below[node], tree.above[node] = add(rows[small], depth + 1), add(rows[~small], depth + 1)
        leaves += 1
    return tree


def _best_split(x: Numbers, y: Ids, rows: Ids, counts: Ids, min_leaf: int) -> _Split | None:
    """The split of ``rows`` whose parts are purest; None where no part may be smaller, or all have one class."""
    n = len(rows)
    if n < 2 * min_leaf or counts.max() == n:
        return None
    rank = np.arange(n) - (np.cumsum(counts) - counts).repeat(counts)  # of rows in order of class: how many are before
    sizes = np.arange(min_leaf, n - min_leaf + 1)[:, None]  # of the part below
    best, best_score = None, (-np.inf, -np.inf)
    step = max(1, _AT_ONCE // n)
    for first in range(0, x.shape[1], step):
        numbers = x[rows, first : first + step]
        order = numbers.argsort(axis=0, kind="stable")
        numbers, labels = np.take_along_axis(numbers, order, axis=0), y[rows][order]
        before = np.empty_like(labels)  # how many rows of the same class have a smaller number
        np.put_along_axis(before, labels.argsort(axis=0, kind="stable"), rank[:, None], axis=0)
        # With L rows of class c below and R above: Σ L² grows by 2 L + 1 with each row, and Σ R² = Σ (N - L)².
        below = np.cumsum(2 * before + 1, axis=0)[min_leaf - 1 : n - min_leaf]
        above = (counts**2).sum() - 2 * np.cumsum(counts[labels], axis=0)[min_leaf - 1 : n - min_leaf] + below
        scores = below / sizes + above / (n - sizes)
        apart = numbers[min_leaf : n - min_leaf + 1] > numbers[min_leaf - 1 : n - min_leaf] + np.float32(_EQUAL)
        scores[~apart] = -np.inf
        places, highest = scores.argmax(axis=0), scores.max(axis=0)
        for column in np.flatnonzero(np.isfinite(highest) & (highest >= max(highest.max(), best_score[0]))):
            size = int(places[column]) + min_leaf
            score = float(highest[column]), float(labels[size:, column].mean())
            if score > best_score:
                low, high = float(numbers[size - 1, column]), float(numbers[size, column])
                middle = low / 2 + high / 2
                gain = score[0] - float((counts**2).sum()) / n
                best, best_score = _Split(first + int(column), low if middle == high else middle, gain), score
    return best
