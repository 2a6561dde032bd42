"""A fitted estimator as observers see it after each of its epochs: the model of its first stages."""

from collections.abc import Sequence
from typing import Any, cast, final

import torch
from torch import Tensor, nn

from umix.data.loader import batches
from umix.data.task import Split
from umix.nets.estimators.estimator import Fitted
from umix.nets.net import Net
from umix.training.estimator_threads import estimator_threads

_AT_ONCE = 2**17  # rows that are predicted at once


@final
class AtStage(nn.Module):
    """The net of a fitted estimator, cut after one of ``ends``; the logits of a split are computed once for all of them."""

    def __init__(self, net: Net, ends: Sequence[int], *, threads: int = 1) -> None:
        super().__init__()
        self.net = net
        self._ends = tuple(ends)
        self._threads = threads
        self._place = 0
        self._known: dict[Split, Tensor] = {}

    def at(self, epoch: int) -> Net:
        """This net after ``epoch``, counted from the first of ``ends``."""
        self._place = epoch
        self._fitted.cut = self._ends[epoch]
        return cast(Net, self)

    @property
    def _fitted(self) -> Fitted:
        return cast(Fitted, self.net.body)

    def logits(self, split: Split) -> Tensor:
        """The logits of all examples of ``split``, float32 [n, classes]."""
        if split not in self._known:
            with estimator_threads(self._threads):
                self._known[split] = stage_logits(self._fitted, split, self._ends)
        return self._known[split][self._place].to(split.y.device)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return self.net.state_dict(*args, **kwargs)


def stage_logits(fitted: Fitted, split: Split, ends: Sequence[int]) -> Tensor:
    """The logits of every example of ``split`` by the first ``end`` stages, for each of ``ends``: [ends, n, classes]."""
    found = torch.empty(len(ends), len(split), fitted.n_classes)
    for batch in batches(split, torch.arange(len(split)), batch_size=_AT_ONCE) if len(split) else ():
        found[:, batch.index.cpu()] = fitted.logits_at(batch.x.cpu().numpy(), ends)
    return found
