"""Where to cut a column of numbers into bins."""

import torch
from torch import Tensor


def bin_edges(values: Tensor, bins: int) -> Tensor:
    """At most ``bins`` + 1 rising edges, float64, from the lowest to the highest of the finite ``values`` [n].

    They are quantiles, except that a value which fills a bin alone is an edge of its own and does not count for the others.
    Otherwise a column such as a capital gain, which is 0 for nearly everybody, would get one bin for all gains there are.

    >>> bin_edges(torch.tensor([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0]), 2)
    tensor([0., 1., 3.], dtype=torch.float64)
    """
    values = values.double()
    distinct: Tensor
    counts: Tensor
    distinct, counts = torch.unique(values, return_counts=True)
    if len(distinct) <= bins + 1:
        return distinct
    heavy = counts * bins > len(values)
    rest = distinct[~heavy].repeat_interleave(counts[~heavy])
    n_edges = max(2, bins + 1 - int(heavy.sum()))
    places = torch.linspace(0, len(rest) - 1, n_edges, dtype=torch.float64)
    quantiles = rest[places.round().long()]
    edges: Tensor = torch.cat([distinct[heavy], quantiles]).unique()
    return edges
