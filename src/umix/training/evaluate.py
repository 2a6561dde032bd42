"""Evaluation passes over a split: correctness, losses, logits and features of its examples."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from umix.data.loader import batches
from umix.data.task import Split
from umix.nets.net import Net

_CHUNK = 2**22  # input numbers per evaluation batch: enough to keep the device busy, few enough for its cache


@torch.inference_mode()
def correctness(net: Net, split: Split, *, batch_size: int) -> Tensor:
    """Whether each example of ``split`` is predicted correctly by the net in evaluation mode, bool [n]."""
    correct = torch.empty_like(split.y, dtype=torch.bool)
    for rows, logits in _logits(net, split, batch_size):
        correct[rows] = logits.argmax(dim=1) == split.y[rows]
    return correct


@torch.inference_mode()
def correctness_and_losses(net: Net, split: Split, *, batch_size: int) -> tuple[Tensor, Tensor]:
    """``correctness`` and the cross-entropy of each example, float32 [n], in one pass."""
    correct = torch.empty_like(split.y, dtype=torch.bool)
    losses = torch.empty_like(split.y, dtype=torch.float32)
    for rows, logits in _logits(net, split, batch_size):
        correct[rows] = logits.argmax(dim=1) == split.y[rows]
        losses[rows] = cross_entropy(logits.float(), split.y[rows], reduction="none")
    return correct, losses


def _logits(net: Net, split: Split, batch_size: int) -> Iterator[tuple[slice | Tensor, Tensor]]:
    """Batches of row numbers and their logits, with the net in evaluation mode."""
    net.eval()
    if isinstance(split.x, Tensor) and split.transform is None:
        step = max(batch_size, min(8192, _CHUNK // max(1, split.x[:1].numel())))
        for begin in range(0, len(split), step):
            rows = slice(begin, begin + step)
            yield rows, net(split.x[rows])
        return
    for batch in batches(split, torch.arange(len(split)), batch_size=batch_size):
        yield batch.index, net(batch.x)


@torch.no_grad()
def outputs(net: Net, split: Split, *, batch_size: int, features: bool = False) -> Tensor:
    """The logits, or with ``features`` the features, of all examples of ``split``, [n, width], in evaluation mode."""
    net.eval()
    of = net.features if features else net
    parts = [of(batch.x) for batch in batches(split, torch.arange(len(split)), batch_size=max(batch_size, 512))]
    return torch.cat(parts)
