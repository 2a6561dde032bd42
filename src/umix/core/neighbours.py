"""Each example's nearest neighbours of its own class, and means over them.

What a shortcut gets wrong lies together, label noise does not: the uncertainty of an example's neighbourhood tells the two apart,
and so does the accuracy of the worst neighbourhoods.
"""

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torch import Tensor

NEIGHBOURS = 50
#: Examples of a class among which neighbours are looked for: distances to all of them would take minutes on a large table.
MOST = 5_000
#: The share of the neighbourhoods, those with the lowest rates, whose mean rate is a candidate's.
LOWEST = 0.2


def class_neighbours(
    x: NDArray[np.float32],
    y: NDArray[np.int64],
    *,
    rng: np.random.Generator,
    of: NDArray[np.int64] | None = None,
    k: int = NEIGHBOURS,
    most: int = MOST,
) -> NDArray[np.int64]:
    """The numbers of the ``k`` examples of the same class that are nearest to each example, or to the examples ``of``, [n, k].

    They are looked for among ``most`` random examples of a class, as a rule the example itself among them. Where a class has fewer
    than ``k`` examples, these are repeated in turn, nearest first.

    >>> x, y = np.array([[0.0], [1.0], [1.5], [1.1]], dtype=np.float32), np.array([0, 0, 0, 1])
    >>> class_neighbours(x, y, rng=np.random.default_rng(0), k=2).tolist()
    [[0, 1], [1, 2], [2, 1], [3, 3]]
    """
    from sklearn.neighbors import NearestNeighbors  # imported here because it takes a second

    of = np.arange(len(x)) if of is None else of
    neighbours = np.empty((len(of), k), dtype=np.int64)
    for label in np.unique(y[of]):
        places = np.flatnonzero(y[of] == label)
        among = np.sort(rng.permutation(np.flatnonzero(y == label))[:most])
        with threadpool_limits(1):  # sums must not depend on the number of threads
            search = NearestNeighbors(n_neighbors=min(k, len(among)), algorithm="brute").fit(x[among])
            nearest = search.kneighbors(x[of[places]], return_distance=False)
        neighbours[places] = among[nearest][:, np.arange(k) % nearest.shape[1]]
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


def lowest_mean(rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of the lowest fifth of the ``rates`` [..., n], at least of one, [...].

    >>> lowest_mean(np.array([[0.9, 0.2, 0.8, 0.4, 0.6, 1.0, 1.0, 1.0, 1.0, 1.0], np.arange(10) / 10])).round(2).tolist()
    [0.3, 0.05]
    """
    lowest = max(1, int(LOWEST * rates.shape[-1]))
    means: NDArray[np.float64] = np.sort(rates, axis=-1)[..., :lowest].mean(axis=-1)
    return means
