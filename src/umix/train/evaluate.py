"""One clean pass over a split: who is predicted correctly."""

from collections.abc import Callable

import torch
from torch import Tensor

from umix.data.loader import batches
from umix.data.task import Split
from umix.nets.net import Net

_CHUNK = 2**22  # input numbers per evaluation batch: large enough to keep the device busy, small enough for its cache


@torch.inference_mode()
def correctness(net: Net, split: Split, *, batch_size: int) -> Tensor:
    """Whether each example of ``split`` is predicted correctly by the net in evaluation mode, bool [n]."""
    net.eval()
    correct = torch.empty_like(split.y, dtype=torch.bool)
    if isinstance(split.x, Tensor) and split.transform is None:
        step = max(batch_size, min(8192, _CHUNK // max(1, split.x[:1].numel())))
        for begin in range(0, len(split), step):
            rows = slice(begin, begin + step)
            torch.eq(net(split.x[rows]).argmax(dim=1), split.y[rows], out=correct[rows])
        return correct
    for batch in batches(split, torch.arange(len(split)), batch_size=batch_size):
        correct[batch.index] = net(batch.x).argmax(dim=1) == batch.y
    return correct


@torch.no_grad()
def outputs(of: Callable[[Tensor], Tensor], net: Net, split: Split, *, batch_size: int) -> Tensor:
    """``of(x)`` for every example of ``split``, [n, width], the net in evaluation mode; ``of`` is the net or its features."""
    net.eval()
    parts = [of(batch.x) for batch in batches(split, torch.arange(len(split)), batch_size=max(batch_size, 512))]
    return torch.cat(parts)
