"""Each example's nearest neighbours of its own class, and means over them.

What a shortcut gets wrong lies together, label noise does not: the uncertainty of an example's neighbourhood tells the two apart.
"""

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torch import Tensor

NEIGHBOURS = 50
#: Examples of a class among which neighbours are looked for: distances to all of them would take minutes on a large table.
MOST = 5_000


def class_neighbours(
    x: NDArray[np.float32], y: NDArray[np.int64], *, rng: np.random.Generator, k: int = NEIGHBOURS, most: int = MOST
) -> NDArray[np.int64]:
    """The numbers of the ``k`` examples of the same class that are nearest to each example, [n, k].

    They are looked for among ``most`` random examples of a class, the example itself among them. Where a class has fewer than ``k``
    examples, these are repeated in turn, nearest first.

    >>> x, y = np.array([[0.0], [1.0], [1.5], [1.1]], dtype=np.float32), np.array([0, 0, 0, 1])
    >>> class_neighbours(x, y, rng=np.random.default_rng(0), k=2).tolist()
    [[0, 1], [1, 2], [2, 1], [3, 3]]
    """
    from sklearn.neighbors import NearestNeighbors  # imported here because it takes a second

    neighbours = np.empty((len(x), k), dtype=np.int64)
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        among = np.sort(rng.permutation(rows)[:most])
        with threadpool_limits(1):  # sums must not depend on the number of threads
            search = NearestNeighbors(n_neighbors=min(k, len(among)), algorithm="brute").fit(x[among])
            nearest = search.kneighbors(x[rows], return_distance=False)
        neighbours[rows] = among[nearest][:, np.arange(k) % nearest.shape[1]]
    return neighbours


def neighbour_means(u: Tensor, neighbours: Tensor, *, sample_weight: Tensor | None = None) -> Tensor:
    """The mean of ``u`` [n] over the ``neighbours`` [n, k] of each example, [n].

    With ``sample_weight`` [n], an example counts as that many copies; a neighbourhood without copies has the mean 0.

    >>> import torch
    >>> neighbour_means(torch.tensor([0.0, 1.0]), torch.tensor([[0, 1], [1, 1]]))
    tensor([0.5000, 1.0000])
    """
    values = u.double()[neighbours]
    if sample_weight is None:
        return values.mean(dim=1).to(u)
    copies = sample_weight.double()[neighbours]
    total = copies.sum(dim=1)
    return ((copies * values).sum(dim=1) / total.where(total > 0, 1.0)).to(u)
