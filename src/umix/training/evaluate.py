"""Evaluation passes over a split: correctness, losses, logits and features of its examples."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from umix.data.loader import batches
from umix.data.task import Split
from umix.errors import UserError
from umix.models.model import Model
from umix.training.stage import ErmStage

if TYPE_CHECKING:
    from umix.training.context import Context

_CHUNK = 2**22  # input numbers per evaluation batch: enough to keep the device busy, few enough for its cache


@torch.inference_mode()
def correctness(net: Model, split: Split, *, batch_size: int) -> Tensor:
    """Whether each example of ``split`` is predicted correctly by the net in evaluation mode, bool [n]."""
    correct = torch.empty_like(split.y, dtype=torch.bool)
    for rows, logits in _logits(net, split, batch_size):
        correct[rows] = logits.argmax(dim=1) == split.y[rows]
    return correct


@final
@dataclass(frozen=True, eq=False)
class Evaluated:
    """What a net says of the ``n`` examples of a split.

    ``predicted`` is the class with the largest logit, int64 [n]; ``losses`` the cross-entropy, float32 [n]; ``logits`` float32
    [n, classes], None unless they were asked for.
    """

    predicted: Tensor
    losses: Tensor
    logits: Tensor | None


@torch.inference_mode()
def evaluate(net: Model, split: Split, *, n_classes: int, batch_size: int, keep_logits: bool = False) -> Evaluated:
    """Predictions, losses and with ``keep_logits`` the logits of the net in evaluation mode, in one pass over ``split``."""
    predicted = torch.empty_like(split.y)
    losses = torch.empty_like(split.y, dtype=torch.float32)
    kept = torch.empty(len(split), n_classes, device=split.y.device) if keep_logits else None
    for rows, logits in _logits(net, split, batch_size):
        predicted[rows] = logits.argmax(dim=1)
        losses[rows] = cross_entropy(logits.float(), split.y[rows], reduction="none")
        if kept is not None:
            kept[rows] = logits.float()
    return Evaluated(predicted, losses, kept)


@torch.inference_mode()
def split_logits(net: Model, split: Split, *, n_classes: int, batch_size: int) -> Tensor:
    """The logits of each example of ``split``, float32 [n, classes] on the host."""
    every = torch.empty(len(split), n_classes)
    for rows, logits in _logits(net, split, batch_size):
        every[rows.cpu() if isinstance(rows, Tensor) else rows] = logits.float().cpu()
    return every


@torch.inference_mode()
def stacked_logits(net: Model, split: Split, *, batch_size: int) -> Tensor:
    """Logits of every example of ``split`` by every net of a stack, [nets, n, classes]; a single net is a stack of one."""
    parts = [logits if logits.dim() == 3 else logits[None] for _, logits in _logits(net, split, batch_size)]
    return torch.cat(parts, dim=1)


def _logits(net: Model, split: Split, batch_size: int) -> Iterator[tuple[slice | Tensor, Tensor]]:
    """Batches of row numbers and their logits, with the net in evaluation mode."""
    if (logits_known := net.known_logits(split)) is not None:
        yield slice(0, len(split)), logits_known
        return
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
def outputs(net: Model, split: Split, *, batch_size: int, features: bool = False) -> Tensor:
    """The logits, or with ``features`` the features, of all examples of ``split``, [n, width], in evaluation mode."""
    net.eval()
    of = net.features if features else net
    parts = [of(batch.x) for batch in batches(split, torch.arange(len(split)), batch_size=max(batch_size, 512))]
    return torch.cat(parts)


def require_finite(values: Tensor, *, what: str, stage: str) -> Tensor:
    """``values`` [n, width], which are ``what`` the net of ``stage`` says of n examples; raises if a number is not finite."""
    broken = int((~values.isfinite()).flatten(1).any(dim=1).sum())
    if broken:
        raise UserError(
            f"The {what} of stage {stage!r} must be finite numbers, but those of {broken} examples are not; try a smaller "
            f"{stage}.lr."
        )
    return values


def reference_logits(context: "Context", stage: ErmStage) -> Tensor:
    """The logits of the net at the end of ``stage`` for every training example, [n, classes]; raises if one is not finite."""
    return require_finite(context.logits(context.reference(stage), "train"), what="logits", stage=stage.name)
