"""The risk of logits to which a known offset is added in training only: priors of classes, and margins."""

from dataclasses import dataclass
from typing import final

import numpy as np
from torch import Tensor
from torch.nn.functional import cross_entropy

from umix.data.batch import Batch
from umix.nets.net import Net
from umix.training.objective import Objective, State


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class OffsetRisk(Objective):
    """The mean of CE(``scale``·(net(x) + offset), y) / ``scale``; predictions are those of the net alone.

    ``offset`` is [classes], the same for all examples, or [rows, classes] with the row of every training example in ``row`` [n].
    ``weights`` [n] has a weight for every training example, which counts from step ``weights_from`` on.
    The division keeps the gradient in the logits in [−1, 1]; the larger ``scale`` is, the more the loss is like a hinge.
    """

    takes_weights = True

    offset: Tensor
    row: Tensor | None = None
    scale: float = 1.0
    weights: Tensor | None = None
    weights_from: int = 0

    def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        offset = self.offset if self.row is None else self.offset[self.row.index_select(0, batch.index)]
        logits = net(batch.x) + offset
        w = batch.weight
        if self.weights is not None and batch.step >= self.weights_from:
            own = self.weights.index_select(0, batch.index)
            w = own if w is None else w * own
        if self.scale == 1 and w is None:
            return cross_entropy(logits, batch.y), state
        losses = cross_entropy(self.scale * logits, batch.y, reduction="none")
        return (losses if w is None else w * losses).mean() / self.scale, state
