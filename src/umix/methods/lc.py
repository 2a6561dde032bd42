"""LC: logit correction with group mixup, the parent of uLA (Liu et al. 2023).

Two nets are trained on the same batches. The biased net minimises the generalised cross-entropy (1 − p^q)/q, which favours what is
easy; the class a that it predicts stands in for the spurious attribute. P(y | a) is estimated by a moving average over batches of
the mean of softmax(biased logits / temperature)_a·1[y], normalised over y. The other net, which is the result, minimises
CE(f(x) + log(P(· | a)^eta + 1e-4), y) and predicts with f alone: minimising it maximises the accuracy that weighs all groups (y, a)
the same.

Group mixup: x is replaced by λ·x + (1 − λ)·x', where x' is drawn from the examples of the same label in the batch that the biased
net gets wrong, the minority; if there are none, from all of the label. The two P are mixed in the same way. λ is uniform in
[1 − 2t, 1 − t], where t = ½·exp(−5·(1 − step/ramp)²) grows to ½ within ``ramp`` steps. ``group_mixup`` is something else: any two
examples are mixed, and known groups weigh. Group labels are not used.

With ``eta=0`` and ``mix=false`` it is ERM. ``ula`` trains the biased net first and computes P(y | a) once.

Differs from the paper:
- the table is read from the companion of the current step; the paper's Algorithm 1 was not compared line by line (unverified).

Differs from the released code:
- the table is the mean over all examples of the batch; there each cell (y, a) holds the mean of the biased net's p_y over its
  examples, of the batch (Waterbirds) or averaged over batches;
- both nets have the optimiser of the fit; there the biased net has a tenth of the learning rate and no weight decay, and its loss
  counts twice (Waterbirds) or a tenth (CivilComments): ``bias_weight`` is the product for SGD on Waterbirds. The gradient of its
  loss is that of the printed formula, there q times as large.
"""

from dataclasses import dataclass
from math import exp
from typing import Annotated, ClassVar, final

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import cross_entropy

from umix.core.losses import generalized_cross_entropy
from umix.core.mixing import mix
from umix.data.batch import Batch
from umix.methods.method import Method
from umix.models.model import Model
from umix.settings import among
from umix.training.context import Context
from umix.training.mixup_risk import MIXERS, Mixing, require_mixable
from umix.training.objective import Objective, State
from umix.training.train_result import TrainResult

_FLOOR = 1e-4  # is added to a share before its logarithm


def minority_partners(y: Tensor, predicted: Tensor, draws: Tensor) -> Tensor:
    """A partner of the same label for every example, int64 [n]: one whose prediction is wrong, if there is one in the batch.

    ``draws`` [n, n] are uniform numbers in [0, 1); of the examples that fit, the one with the largest draw is taken.

    >>> y, predicted = torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 1, 1])
    >>> minority_partners(y, predicted, torch.eye(4) / 2)
    tensor([1, 1, 2, 3])
    """
    fits = (y[:, None] == y).to(draws.dtype)
    return (draws + 2 * fits + fits * (predicted != y)).argmax(1)


def mixing_range(step: int, ramp: int) -> tuple[float, float]:
    """The range [1 − 2t, 1 − t] of λ at a step, where t = ½·exp(−5·(1 − step/ramp)²) until ``ramp`` steps, then ½.

    >>> mixing_range(400, 400)
    (0.0, 0.5)
    """
    left = 1 - min(1.0, step / ramp) if ramp else 0.0
    t = exp(-5 * left**2) / 2
    return 1 - 2 * t, 1 - t


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class CorrectedRisk(Objective):
    """The corrected loss of the net plus ``bias_weight`` times GCE of its companion; the state ``table`` [a, y] has the shares."""

    n_classes: int
    eta: float
    temperature: float
    smoothing: float
    q: float
    bias_weight: float
    mix: bool
    ramp: int
    mixing: Mixing = "input"

    @property
    def mixes(self) -> bool:  # type: ignore[override]
        return self.mix

    def init(self, n_groups: int) -> State:
        return {"table": torch.full((self.n_classes, self.n_classes), self.n_classes**-2.0)}

    def risk(self, net: Model, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        if net.companion is None:
            raise ValueError("CorrectedRisk trains a companion beside the net: fit it with companion=True.")
        biased = net.companion(batch.x)
        table = self._updated(state["table"], biased.detach(), batch.y)
        predicted = biased.detach().argmax(1)
        share = (table / table.sum(1, keepdim=True)).index_select(0, predicted)
        logits, share = self._mixed(net, batch, predicted, share, rng) if self.mix else (net(batch.x), share)
        corrected = cross_entropy(logits + (share**self.eta + _FLOOR).log(), batch.y)
        easy = generalized_cross_entropy(biased, batch.y, q=self.q).mean()
        return corrected + self.bias_weight * easy, {"table": table}

    def _updated(self, table: Tensor, biased: Tensor, y: Tensor) -> Tensor:
        """The table [a, y] after a batch."""
        p = (biased.to(table.dtype) / self.temperature).softmax(1)
        now = torch.zeros_like(table).index_add_(0, y, p).T / len(y)
        return self.smoothing * table + (1 - self.smoothing) * now

    def _mixed(
        self, net: Model, batch: Batch, predicted: Tensor, share: Tensor, rng: np.random.Generator
    ) -> tuple[Tensor, Tensor]:
        """Logits and shares of pairs of one label; the partner is of the minority."""
        lam = float(rng.uniform(*mixing_range(batch.step, self.ramp)))
        draws = torch.from_numpy(rng.random((len(batch.y), len(batch.y)), dtype=np.float32))
        pair = minority_partners(batch.y, predicted, draws.to(batch.y.device, non_blocking=True))
        logits, true_lam = MIXERS[self.mixing](net, batch.x, pair, lam, rng)
        return logits, mix(share, pair, true_lam)


@final
class LC(Method):
    """Logit correction: what a biased second net predicts is corrected for, and its minority is mixed in."""

    name: ClassVar[str] = "lc"
    paper: ClassVar[str] = "Liu et al., Avoiding spurious correlations via logit correction, ICLR 2023"

    eta: Annotated[float, among(0.5, 1.0)] = Field(
        1.0, ge=0, description="strength of the correction; 0 corrects nothing"
    )
    mix: bool = Field(True, description="group mixup: examples are mixed with the minority of their label")
    mixing: Mixing = Field("input", description="what is mixed: inputs, boxes of images, or pooled features")
    ramp: Annotated[int, among(100, 400, 1000)] = Field(
        400, ge=0, description="steps until the minority has half of a mixture or more; 0: from the first on"
    )
    q: Annotated[float, among(0.5, 0.7, 0.8)] = Field(
        0.8, ge=0, le=1, description="how much the biased net prefers what is easy; 0 is cross-entropy"
    )
    bias_weight: Annotated[float, among(0.1, 0.2, 1.0)] = Field(
        0.2, gt=0, description="weight of the biased net's loss"
    )
    temperature: Annotated[float, among(0.1, 1.0)] = Field(
        0.1, gt=0, description="of the biased net's probabilities in the table (the paper's tau)"
    )
    smoothing: Annotated[float, among(0.5, 0.9)] = Field(
        0.9, ge=0, lt=1, description="share of the past in the moving average of the table"
    )

    def train(self, context: Context) -> TrainResult:
        if self.mix:
            require_mixable(self.mixing, context)
        objective = CorrectedRisk(n_classes=context.task.n_classes, **self.model_dump())
        return context.fit(objective, companion=True)
