"""The weighted mixup objective of UMIX; other mixup methods use it with other weights or pairs."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from torch import Tensor

from umix.core.losses import weighted_risk
from umix.core.mixing import draw_lambda, mixed_risk
from umix.core.pairing import Ids, partners
from umix.data.batch import Batch
from umix.methods.parts.mixers import MIXERS, Mixing
from umix.nets.net import Net
from umix.training.objective import Objective, State

#: The partner of every example of the batch, as positions in the batch [batch].
Pairing = Callable[[Batch, np.random.Generator], Ids]


def any_pair(batch: Batch, rng: np.random.Generator) -> Ids:
    """Any two examples: a random permutation of the batch."""
    return partners(len(batch.y), rng=rng)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class MixupRisk(Objective):
    """The weighted loss of mixed pairs with probability ``sigma``, else of the batch as it is (UMIX Algorithm 1).

    ``weights`` [n] has a weight for every training example, None means equal weights. λ ~ Beta(alpha, alpha), and whether to
    mix at all, are drawn once per batch, or per example with ``per_example``. ``pairing`` chooses
    the partners. ``watch`` is called with the λ of every batch: 1 if it is not mixed.
    """

    takes_weights = True

    weights: Tensor | None = None
    sigma: float
    alpha: float
    mixing: Mixing = "input"
    per_example: bool = False
    pairing: Pairing = any_pair
    watch: Callable[[float], None] | None = None

    @property
    def mixes(self) -> bool:  # type: ignore[override]
        return self.sigma > 0

    @property
    def example_weights(self) -> Tensor | None:
        if self.pairing is not any_pair:
            return None
        return torch.ones(()) if self.weights is None else self.weights

    def logging_lambda(self, see: Callable[[float], None]) -> "MixupRisk":
        return replace(self, watch=see)

    def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        w = self._weights_of(batch)
        lam = self._draw(len(batch.y), rng, batch.y.device)
        if lam is None:
            return weighted_risk(net(batch.x), batch.y, w), state
        pair = torch.from_numpy(self.pairing(batch, rng)).to(batch.y.device, non_blocking=True)
        logits, lam = MIXERS[self.mixing](net, batch.x, pair, lam, rng)
        return mixed_risk(logits, batch.y, w, pair, lam), state

    def _weights_of(self, batch: Batch) -> Tensor | None:
        if self.weights is None:
            return batch.weight
        w = self.weights.index_select(0, batch.index)
        return w if batch.weight is None else batch.weight * w

    def _draw(self, n: int, rng: np.random.Generator, device: torch.device) -> float | Tensor | None:
        """The λ of the batch or of each example on ``device``; None if nothing is mixed."""
        lam = draw_lambda(n, sigma=self.sigma, alpha=self.alpha, per_example=self.per_example, rng=rng)
        if self.watch is not None:
            self.watch(1.0 if lam is None else float(np.mean(lam)))
        return torch.from_numpy(lam).to(device, torch.float32) if isinstance(lam, np.ndarray) else lam
