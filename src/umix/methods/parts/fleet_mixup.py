"""Weighted mixup for a fleet: the members share batches, pairs and λ, and differ in the weights of the examples."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from torch import Tensor

from umix.core.losses import soft_cross_entropy
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
    """The sum over members of what ``MixupRisk`` minimises for each of them.

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
        w = self.weights.index_select(0, batch.index)  # [batch, members]
        w = w * (1 / len(batch.y)) if batch.weight is None else w * (batch.weight / len(batch.y))[:, None]
        lam = float(rng.beta(self.alpha, self.alpha)) if rng.random() < self.sigma else None
        if lam is None:
            logits = net(batch.x).transpose(0, 1)  # [batch, members, classes]
            return soft_cross_entropy(logits, _targets(w, batch.y, logits.shape[2])), state
        pair = torch.from_numpy(partners(len(batch.y), rng=rng)).to(batch.y.device, non_blocking=True)
        logits = self._mixed(net, batch.x, pair, lam)
        own = _targets(w, batch.y, logits.shape[2])
        return soft_cross_entropy(logits, torch.lerp(own.index_select(0, pair), own, lam)), state

    def _mixed(self, net: Net, x: Tensor, pair: Tensor, lam: float) -> Tensor:
        """The logits of the mixed batch, [batch, members, classes]."""
        if net.is_linear:  # mixing logits is mixing inputs, and there are fewer of them
            logits: Tensor = net(x).transpose(0, 1)
            return torch.lerp(logits.index_select(0, pair), logits, lam)
        if self.mixing == "features":
            z = net.features(x)
            mixed: Tensor = net.head(torch.lerp(z.index_select(1, pair), z, lam))
            return mixed.transpose(0, 1)
        logits = net(mix(net.encode(x), pair, lam), encoded=True)
        return logits.transpose(0, 1)


def _targets(w: Tensor, y: Tensor, n_classes: int) -> Tensor:
    """The weight of every example at its class, [batch, members, classes]."""
    one_hot = torch.eye(n_classes, dtype=w.dtype, device=w.device).index_select(0, y)
    return w[:, :, None] * one_hot[:, None, :]
