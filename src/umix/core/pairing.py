"""Who is mixed with whom in a batch: a partner for every example, as positions [batch].

An example without a legal partner is its own: mixed with itself it passes through unchanged. No value is read back from the device.
"""

import numpy as np
import torch
from torch import Tensor


def partners(n: int, *, rng: np.random.Generator, device: torch.device | None = None) -> Tensor:
    """A random permutation of the batch, int64 [n]: any example may be paired with any.

    >>> partners(3, rng=np.random.default_rng(0)).sort().values
    tensor([0, 1, 2])
    """
    return torch.from_numpy(rng.permutation(n)).to(device or "cpu")


def partners_within(key: Tensor, *, rng: np.random.Generator) -> Tensor:
    """A partner with the same ``key`` [batch], uniform among the others that have it.

    Within a key the pairs form one random cycle, so every example is also a partner exactly once.

    >>> partners_within(torch.tensor([5, 7, 5]), rng=np.random.default_rng(0))
    tensor([2, 1, 0])
    """
    n = len(key)
    order = torch.argsort(key * n + partners(n, rng=rng, device=key.device))  # by key, in random order within a key
    ordered = key[order]
    begins = torch.ones_like(key, dtype=torch.bool)
    begins[1:] = ordered[1:] != ordered[:-1]
    first = torch.cummax(torch.arange(n, device=key.device) * begins, dim=0).values
    successor = torch.where(begins.roll(-1), order[first], order.roll(-1))  # the last of a key goes back to its first
    return torch.empty_like(order).scatter_(0, order, successor)


def partners_across(same: Tensor, other: Tensor, *, n_same: int, n_other: int, rng: np.random.Generator) -> Tensor:
    """A partner with the same ``same`` and another ``other`` (both [batch]), uniform among all that fit, with replacement.

    ``same`` lies in 0..n_same-1 and ``other`` in 0..n_other-1.

    >>> same, other = torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1])
    >>> partners_across(same, other, n_same=2, n_other=2, rng=np.random.default_rng(0))
    tensor([1, 0, 2])
    """
    n, cell = len(same), same * n_other + other
    order = torch.argsort(cell * n + partners(n, rng=rng, device=same.device))
    sizes = torch.zeros(n_same * n_other, dtype=torch.int64, device=same.device)
    sizes.index_add_(0, cell, torch.ones_like(cell))
    ends = sizes.cumsum(0)
    begin, size = (
        (ends - sizes)[cell],
        sizes[cell],
    )  # of the example's own cell, which lies inside the stretch of ``same``
    stretch = torch.nn.functional.pad(ends.view(n_same, n_other)[:, -1], (1, 0))
    choices = stretch[same + 1] - stretch[same] - size
    draw = torch.from_numpy(rng.random(n)).to(same.device)
    place = stretch[same] + (draw * choices).long()
    place = place + size * (place >= begin)  # step over the own cell
    own = torch.arange(n, device=same.device)
    return torch.where(choices > 0, order[place.clamp_max(n - 1)], own)
