"""CORAL: features with the same mean and covariance in every domain (Sun and Saenko 2016).

min mean ℓ + γ·mean over pairs of domains [ mean_d (μ_i − μ_j)² + mean_dd' (C_i − C_j)² ], with the
mean μ and the covariance C of a domain's features in the batch (eq. 1 and 6 of the paper: two
domains, covariances only).

Domains are the values of the attribute, as in SubpopBench; with ``domains=group`` they are the
training groups. If these are label×attribute cells, as WILDS has them for Waterbirds, CelebA and
CivilComments, domains differ in their labels, and γ should be small: to match them punishes
whatever tells the classes apart. Batches hold all domains in equal parts, as in DomainBed and
WILDS, because the features of several domains are compared within a batch.

Differs from the paper:
- domain generalisation instead of adaptation: all domains are labelled, and all pairs of those in
  the batch are aligned;
- means are aligned too, and the factor is 1 instead of ¼, as in DomainBed and WILDS.

Differs from the released code:
- SubpopBench compares the domains of shuffled batches;
- the mean over pairs is computed without a loop over pairs and without covariance matrices, at a
  cost of batch² instead of domains·features²; a domain with one example in the batch has covariance
  0 instead of NaN.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar, final

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import cross_entropy

from umix.core.environments import Environments, mean_coral
from umix.data.batch import Batch
from umix.data.samplers import Balanced
from umix.methods.parts.domains import ComparesDomains, Domains
from umix.models.model import Model
from umix.settings import between
from umix.training.context import Context
from umix.training.objective import Objective, State
from umix.training.train_result import TrainResult


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class AlikeFeaturesRisk(Objective):
    """The mean loss plus ``gamma`` times the ``distance`` between the features of the domains in the batch."""

    distance: Callable[[Tensor, Environments], Tensor]
    domains: Domains
    gamma: float

    def risk(self, net: Model, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        features = net.features(batch.x)
        risk = cross_entropy(net.head(features), batch.y)
        distance = self.distance(features, self.domains.of(batch, like=features))
        return torch.add(risk, distance, alpha=self.gamma), state


@final
class CORAL(ComparesDomains):
    """Correlation alignment: the features of all domains have the same first two moments."""

    name: ClassVar[str] = "coral"
    paper: ClassVar[str] = "Sun and Saenko, Deep CORAL: Correlation alignment for deep domain adaptation, ECCV 2016"

    gamma: Annotated[float, between(0.01, 10.0, log=True)] = Field(
        1.0, ge=0, description="weight of the features' distance; WILDS: 0.1 Camelyon17, 10 CivilComments"
    )

    def train(self, context: Context) -> TrainResult:
        domains = self.domains_of(context)
        objective = AlikeFeaturesRisk(distance=mean_coral, domains=domains, gamma=self.gamma)
        return context.fit(objective, sampler=Balanced(domains.ids))
