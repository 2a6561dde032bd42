"""Losses: one number per example."""

from typing import Any

import torch
from torch import Tensor

from umix.core.precision import widened


def cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    """−log p(y) of every example, [batch].

    >>> cross_entropy(torch.zeros(1, 4), torch.tensor([2])).exp()
    tensor([4.])
    """
    return torch.nn.functional.cross_entropy(logits, y, reduction="none")


def weighted_risk(logits: Tensor, y: Tensor, w: Tensor | None) -> Tensor:
    """The mean of ``w`` [batch] times the cross-entropy over the batch; without ``w`` all weights are 1.

    >>> weighted_risk(torch.zeros(2, 2), torch.tensor([1, 0]), torch.tensor([1.0, 3.0]))  # (1 + 3) / 2 · log 2
    tensor(1.3863)
    """
    losses = cross_entropy(logits, y)
    if w is None:
        return losses.mean()
    return torch.dot(w.to(losses) * (1 / len(w)), losses)  # the weighted mean in one operation


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


class _SoftCrossEntropy(torch.autograd.Function):
    """Σ over all cells of target mass times -log softmax; the gradient is in closed form: mass·softmax − target."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor) -> Tensor:
        log_p = torch.log_softmax(logits, dim=-1)
        ctx.save_for_backward(log_p, targets)
        return -torch.dot(targets.flatten(), log_p.flatten())

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, None]:
        log_p, targets = ctx.saved_tensors
        return (log_p.exp().mul_(targets.sum(dim=-1, keepdim=True)).sub_(targets).mul_(grads[0]), None)


@widened
def soft_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Σ −target·log softmax(logits) over everything, a scalar; ``targets`` has the shape of ``logits`` and any mass.

    One operation forward and one backward, where weighted losses of single classes would take ten: a stack of small nets spends
    its time in starting operations. It can be differentiated once.

    >>> import torch
    >>> soft_cross_entropy(torch.zeros(1, 2), torch.tensor([[2.0, 1.0]]))  # three times log 2
    tensor(2.0794)
    """
    loss: Tensor = _SoftCrossEntropy.apply(logits, targets.to(logits))  # type: ignore[no-untyped-call]
    return loss
