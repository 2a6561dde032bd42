"""The objective of methods without mixing: a loss and a weight per example, and a risk of the batch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor

from umix.core.losses import cross_entropy
from umix.data.batch import Batch
from umix.models.model import Model
from umix.training.objective import Objective, State


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class BatchRisk(Objective):
    """``risk_of(w * loss(logits, y))``.

    ``weights`` [n] has a weight for every training example, None means equal weights.
    """

    loss: Callable[[Tensor, Tensor], Tensor] = cross_entropy
    risk_of: Callable[[Tensor], Tensor] = torch.mean
    weights: Tensor | None = None

    @property
    def takes_weights(self) -> bool:  # type: ignore[override]
        """A weight of k has the effect of k copies only if the risk is the mean of the losses."""
        return self.risk_of is torch.mean

    @property
    def example_weights(self) -> Tensor | None:
        if self.loss is not cross_entropy or self.risk_of is not torch.mean:
            return None
        return torch.ones(()) if self.weights is None else self.weights

    def risk(self, net: Model, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        losses = self.loss(net(batch.x), batch.y)
        if self.weights is not None:
            losses = self.weights.index_select(0, batch.index) * losses
        if batch.weight is not None:
            losses = batch.weight * losses
        return self.risk_of(losses), state
