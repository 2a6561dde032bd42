"""The objective of CORAL and MMD: the mean loss, and how far the features of the domains in a batch are from each other."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from umix.core.environments import Environments, environments
from umix.data.batch import Batch
from umix.nets.net import Net
from umix.training.objective import Objective, State


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class AlikeFeaturesRisk(Objective):
    """The mean loss plus ``gamma`` times the ``distance`` between the domains' features; domains are the training groups."""

    distance: Callable[[Tensor, Environments], Tensor]
    n_groups: int
    gamma: float
    needs_groups: bool = True

    def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        features = net.features(batch.x)
        among = environments(batch.known_group(), n_groups=self.n_groups, like=features)
        risk = cross_entropy(net.head(features), batch.y)
        return torch.add(risk, self.distance(features, among), alpha=self.gamma), state
