"""Weighted mixup for a fleet: the members share batches, pairs and λ, and differ in the weights of the examples."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from umix.core.mixing import mix
from umix.core.pairing import partners
from umix.data.batch import Batch
from umix.methods.parts.mixers import Mixing
from umix.nets.net import Net
from umix.training.objective import State
from umix.training.race import FleetObjective


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class FleetMixup(FleetObjective):
    """The sum over members of what ``WeightedMixup`` minimises for each of them.

    The gradient of a member's parameters is that of its own risk. ``weights`` is [n, members].
    """

    takes_weights = True

    weights: Tensor
    sigma: float
    alpha: float
    mixing: Mixing = "input"

    def members(self, index: Sequence[int]) -> "FleetMixup":
        return replace(self, weights=self.weights[:, list(index)].contiguous())

    def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        w = self.weights.index_select(0, batch.index).t()  # [members, batch]
        if batch.weight is not None:
            w = batch.weight * w
        w = w / len(batch.y)
        lam = float(rng.beta(self.alpha, self.alpha)) if rng.random() < self.sigma else None
        if lam is None:
            return _weighted(net(batch.x), batch.y, w), state
        pair = torch.from_numpy(partners(len(batch.y), rng=rng)).to(batch.y.device, non_blocking=True)
        if net.is_linear:  # mixing logits is mixing inputs, and there are fewer of them
            logits = net(batch.x)
            logits = torch.lerp(logits.index_select(1, pair), logits, lam)
        elif self.mixing == "features":
            z = net.features(batch.x)
            logits = net.head(torch.lerp(z.index_select(1, pair), z, lam))
        else:
            logits = net(mix(batch.x, pair, lam))
        mine, partner = _weighted(logits, batch.y, lam * w), _weighted(logits, batch.y[pair], (1 - lam) * w[:, pair])
        return mine + partner, state


def _weighted(logits: Tensor, y: Tensor, w: Tensor) -> Tensor:
    """Σ w·cross-entropy over members and batch."""
    members = len(logits)
    losses = cross_entropy(logits.flatten(0, 1), y.repeat(members), reduction="none")
    return torch.dot(w.flatten(), losses)
