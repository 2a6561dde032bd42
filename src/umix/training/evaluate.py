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
def predictions(net: Net, split: Split, *, batch_size: int) -> Tensor:
    """The class that the net in evaluation mode predicts for each example of ``split``, int64 [n]."""
    predicted = torch.empty_like(split.y)
    for rows, logits in _logits(net, split, batch_size):
        predicted[rows] = logits.argmax(dim=1)
    return predicted


@torch.inference_mode()
def predictions_and_losses(net: Net, split: Split, *, batch_size: int) -> tuple[Tensor, Tensor]:
    """``predictions`` and the cross-entropy of each example, float32 [n], in one pass."""
    predicted = torch.empty_like(split.y)
    losses = torch.empty_like(split.y, dtype=torch.float32)
    for rows, logits in _logits(net, split, batch_size):
        predicted[rows] = logits.argmax(dim=1)
        losses[rows] = cross_entropy(logits.float(), split.y[rows], reduction="none")
    return predicted, losses


@torch.inference_mode()
def probabilities(net: Net, split: Split, *, batch_size: int) -> Tensor:
    """The probability of every class for each example of ``split``, float32 [n, classes] on the host."""
    parts = [(rows, logits.float().softmax(dim=1).cpu()) for rows, logits in _logits(net, split, batch_size)]
    found = torch.empty(len(split), parts[0][1].shape[1] if parts else 0)
    for rows, part in parts:
        found[rows.cpu() if isinstance(rows, Tensor) else rows] = part
    return found


@torch.inference_mode()
def fleet_logits(net: Net, split: Split, *, batch_size: int) -> Tensor:
    """Logits of every example of ``split`` by every member of a fleet, [members, n, classes]; a single net is a fleet of one."""
    parts = [logits if logits.dim() == 3 else logits[None] for _, logits in _logits(net, split, batch_size)]
    return torch.cat(parts, dim=1)


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
