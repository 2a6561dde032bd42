"""LfF: learning from failure (Nam et al. 2020).

Two nets of the same architecture are trained on the same batches. The biased net minimises the
generalised cross-entropy (1 − p^q)/q, whose gradient p^q·∇CE favours easy examples. The debiased
net, which is the result, minimises W·CE with the relative difficulty W = CE_b / (CE_b + CE_d),
which is large if the biased net fails and the debiased one does not. As in the released code, the
two losses in W are moving averages over an example's visits, each divided by its maximum in the
example's class.

A known limit: if a bias has two values and the biased net is right and confident on all examples
that follow it, their W goes to 0. The debiased net then learns the reverse of the bias from the
other examples (on colored_digits the worst group has rate 0).

Differs from the paper:
- the moving average and the division by the class's maximum, which the printed algorithm does not
  have.

Differs from the released code:
- the biased net's gradient is that of the printed loss; in the released code it is q times as
  large;
- W is 1/2 if both losses are 0; in the released code it is 0, because 1e-8 is added to the
  denominator;
- with ``clip_norm`` the gradients of the two nets are clipped together.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, final

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from umix.core.losses import cross_entropy, generalized_cross_entropy
from umix.core.weights import relative_difficulty
from umix.data.batch import Batch
from umix.methods.method import Method
from umix.models.model import Model
from umix.settings import among
from umix.training.context import Context
from umix.training.objective import Objective, State
from umix.training.train_result import TrainResult


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class FailureRisk(Objective):
    """GCE of the companion plus CE of the net weighted by relative difficulty; ``y`` [n] are all training labels.

    The state ``losses`` [2, n] holds the smoothed losses of companion and net. It is −1, which no
    loss can be, for examples that were not visited yet; the first loss of an example is taken as it
    is.
    """

    y: Tensor
    n_classes: int
    q: float
    smoothing: float

    def init(self, n_groups: int) -> State:
        return {"losses": torch.full((2, len(self.y)), -1.0)}

    def risk(self, net: Model, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        if net.companion is None:
            raise ValueError("FailureRisk trains a companion beside the net: fit it with companion=True.")
        biased, debiased = net.companion(batch.x), net(batch.x)
        loss = cross_entropy(debiased, batch.y)
        now = torch.stack([cross_entropy(biased, batch.y), loss]).detach()
        smoothed, state = self._remember(now, batch.index, state)
        w = relative_difficulty(*(smoothed / self._largest(state["losses"])[:, batch.y]))
        return generalized_cross_entropy(biased, batch.y, q=self.q).mean() + (w * loss).mean(), state

    def _remember(self, now: Tensor, index: Tensor, state: State) -> tuple[Tensor, State]:
        """The smoothed losses of the batch's examples, [2, batch], and the state that contains them."""
        before = state["losses"].index_select(1, index)
        smoothed = (self.smoothing * before + (1 - self.smoothing) * now).where(before >= 0, now).to(before)
        return smoothed, {"losses": state["losses"].index_copy(1, index, smoothed)}

    def _largest(self, losses: Tensor) -> Tensor:
        """The largest smoothed loss of every class, [2, classes].

        It is never 0, because losses are divided by it.
        """
        smallest = losses.new_full((2, self.n_classes), torch.finfo(losses.dtype).tiny)
        return smallest.scatter_reduce(1, self.y.expand_as(losses), losses, "amax")


@final
class LfF(Method):
    """Learning from failure: examples on which an easily misled second net fails weigh more."""

    name: ClassVar[str] = "lff"
    paper: ClassVar[str] = (
        "Nam et al., Learning from failure: training debiased classifier from biased classifier, NeurIPS 2020"
    )

    q: Annotated[float, among(0.5, 0.7, 0.9)] = Field(
        0.7, ge=0, le=1, description="how much the biased net prefers what is easy; 0 is cross-entropy"
    )
    smoothing: Annotated[float, among(0.5, 0.7, 0.9)] = Field(
        0.7, ge=0, lt=1, description="share of the past in the moving average of an example's losses"
    )

    def train(self, context: Context) -> TrainResult:
        y = context.splits["train"].y
        objective = FailureRisk(y=y, n_classes=context.task.n_classes, q=self.q, smoothing=self.smoothing)
        return context.fit(objective, companion=True)
