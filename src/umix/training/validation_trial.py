"""The observer of a trial fit: the fit is judged on validation and its net is discarded."""

from collections.abc import Mapping
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from umix.core.counts import class_counts
from umix.data.task import Split
from umix.nets.net import Net
from umix.training.evaluate import correctness


@final
class ValidationTrial:
    """Counts validation hits by class after every epoch, separately for certain and uncertain examples.

    ``uncertain`` is bool [n_val]: whether an earlier stage was uncertain of the example. Test
    examples and groups are not used.
    """

    def __init__(self, val: Split, uncertain: Tensor, *, n_classes: int, batch_size: int) -> None:
        self._val = val
        self._cell = val.y + n_classes * uncertain.to(val.y)
        self._n_classes = n_classes
        self._batch_size = batch_size
        self._hits: list[Tensor] = []

    def observe(self, net: Net, epoch: int) -> None:
        correct = correctness(net, self._val, batch_size=self._batch_size)
        self._hits.append(class_counts(correct, self._cell, n_classes=2 * self._n_classes)[0].cpu())

    @property
    def hits(self) -> NDArray[np.int64]:
        """Hits after every epoch, [epochs, certain and uncertain, classes]."""
        return torch.stack(self._hits).numpy().reshape(len(self._hits), 2, self._n_classes)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Numbers of validation examples, [certain and uncertain, classes]."""
        counted = torch.bincount(self._cell.cpu(), minlength=2 * self._n_classes)
        return counted.numpy().reshape(2, self._n_classes)

    def restore(self, epochs: int, kept: Mapping[str, Tensor]) -> None:
        self._hits = list(kept["trial/hits"])

    def tensors(self) -> dict[str, Tensor]:
        return {"trial/hits": torch.stack(self._hits)}
