"""The objective of every method that looks at one clean pass: a loss per example, a weight per example, a risk of the batch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor

from umix.core.losses import cross_entropy
from umix.data.batch import Batch
from umix.nets.net import Net
from umix.training.objective import Objective, State


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class BatchRisk(Objective):
    """``risk(w * loss(logits, y))``; ``weights`` [n] belong to the examples of the training split, None weighs all alike."""

    loss: Callable[[Tensor, Tensor], Tensor] = cross_entropy
    risk_of: Callable[[Tensor], Tensor] = torch.mean
    weights: Tensor | None = None

    @property
    def takes_weights(self) -> bool:  # type: ignore[override]
        """Weighing the losses is what copies do only where the risk is their mean."""
        return self.risk_of is torch.mean

    def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        losses = self.loss(net(batch.x), batch.y)
        if self.weights is not None:
            losses = self.weights.index_select(0, batch.index) * losses
        if batch.weight is not None:
            losses = batch.weight * losses
        return self.risk_of(losses), state
