"""Losses: one number per example."""

import torch
from torch import Tensor


def cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    """−log p(y) of every example, [batch].

    >>> cross_entropy(torch.zeros(1, 4), torch.tensor([2])).exp()
    tensor([4.])
    """
    return torch.nn.functional.cross_entropy(logits, y, reduction="none")


def focal(logits: Tensor, y: Tensor, *, gamma: float) -> Tensor:
    """(1−p)^gamma · −log p of every example with p = p(y), [batch] (Lin et al. 2017, eq. 4).

    ``gamma=0`` is ``cross_entropy``. An example with p = 1 costs nothing and has gradient 0 for every ``gamma > 0``,
    also for gamma < 1, where the power alone has an infinite slope there.

    >>> focal(torch.zeros(1, 4), torch.tensor([2]), gamma=2.0)  # (3/4)² · log 4
    tensor([0.7798])
    """
    loss = cross_entropy(logits, y)
    if gamma == 0:
        return loss
    miss = -torch.expm1(-loss)  # 1 − p without cancellation
    # At the smallest positive number the slope of the power is finite, so slope · 0 is 0; inf · 0 would be NaN.
    return miss.clamp_min(torch.finfo(loss.dtype).tiny) ** gamma * loss


def generalized_cross_entropy(logits: Tensor, y: Tensor, *, q: float) -> Tensor:
    """(1 − p^q) / q of every example with p = p(y), [batch] (Zhang and Sabuncu 2018).

    Its gradient is p^q times that of ``cross_entropy``, so examples with a large p dominate. ``q=1`` is 1 − p;
    ``q=0`` is the limit, ``cross_entropy``.

    >>> generalized_cross_entropy(torch.zeros(1, 4), torch.tensor([2]), q=0.5)  # (1 − √¼) / ½
    tensor([1.])
    """
    loss = cross_entropy(logits, y)
    return -torch.expm1(-q * loss) / q if q else loss  # p^q = e^(−q·loss), without cancellation where p is near 1
