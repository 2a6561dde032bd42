"""DomainMix: mixup across domains (Xu et al. 2020).

The domains of a batch are put into a random cycle, and each example is mixed with one of the next
domain: x̃ = λx_i + (1−λ)x_j with one λ ~ Beta(alpha, alpha) for each pair of domains. Labels are
mixed in the same way, so the loss is λ·ℓ(x̃, y_i) + (1−λ)·ℓ(x̃, y_j).

Domains are the task's training groups, and batches hold them in equal parts, as in WILDS. A batch
with only one domain is not mixed.

Differs from the paper:
- domain generalisation instead of adaptation: all domains are labelled, labels are mixed too, and
  there is no discriminator between domains; later comparisons of methods call this DomainMix;
- ``mixing`` also offers boxes of images and pooled features.

Differs from the released code:
- there is no released code of this variant; the closest is DomainBed's ``Mixup``, which pairs the
  mini-batches of domains and cuts off the larger one of a pair; here the examples of the smaller
  domain are used again, and all examples count equally.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from umix.core.pairing import Ids, partners_in_next
from umix.data.batch import Batch
from umix.data.samplers import Balanced
from umix.methods.method import Method
from umix.settings import between
from umix.training.context import Context
from umix.training.mixup_risk import Mixing, MixupRisk, require_mixable
from umix.training.train_result import TrainResult


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class DomainCycle:
    """Draws a random cycle of domains, and a λ ~ Beta(alpha, alpha) for each domain and the next one, which it is mixed with.

    ``domain`` [n] is the domain of each training example.
    """

    domain: Ids
    n_domains: int
    alpha: float

    def __call__(self, batch: Batch, rng: np.random.Generator) -> tuple[Ids, NDArray[np.float32]]:
        domain = self.domain[batch.host_rows()]
        pair = partners_in_next(domain, cycle=rng.permutation(self.n_domains))
        return pair, rng.beta(self.alpha, self.alpha, self.n_domains).astype(np.float32)[domain]


@final
class DomainMix(Method):
    """Mixup across domains: every domain is mixed with the next one in a random cycle."""

    name: ClassVar[str] = "domainmix"
    paper: ClassVar[str] = "Xu et al., Adversarial domain adaptation with domain mixup, AAAI 2020"
    needs_groups: ClassVar[bool] = True

    alpha: Annotated[float, between(0.1, 4.0, log=True)] = Field(0.2, gt=0, description="λ ~ Beta(alpha, alpha)")
    mixing: Mixing = Field("input", description="what is mixed: inputs, boxes of images, or pooled features")

    def train(self, context: Context) -> TrainResult:
        require_mixable(self.mixing, context)
        train, domains = context.task.splits["train"], context.task.training_groups
        draw = DomainCycle(domain=train.group.numpy(), n_domains=len(domains), alpha=self.alpha)
        objective = MixupRisk(sigma=1.0, alpha=self.alpha, mixing=self.mixing, draw=draw)
        return context.fit(objective, sampler=Balanced(train.group))
