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

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, final

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from umix.core.cycles import Ids, partners_in_next
from umix.core.mixing import mixed_risk
from umix.data.batch import Batch
from umix.data.samplers import Balanced
from umix.methods.method import Method
from umix.methods.parts.mixers import MIXERS, Mixing, require_mixable
from umix.nets.net import Net
from umix.settings import between
from umix.training.objective import Objective, State
from umix.training.trainer import Trainer


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class DomainMixup(Objective):
    """The loss of examples mixed across domains; ``domain`` [n] is the domain of each training example.

    ``watch`` is called with the mean λ of every batch.
    """

    domain: Ids
    n_domains: int
    alpha: float
    mixing: Mixing = "input"
    watch: Callable[[float], None] | None = None

    def logging_lambda(self, see: Callable[[float], None]) -> "DomainMixup":
        return replace(self, watch=see)

    def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        domain, device = self.domain[batch.host_rows()], batch.y.device
        pairs = partners_in_next(domain, cycle=rng.permutation(self.n_domains))
        lams = rng.beta(self.alpha, self.alpha, self.n_domains).astype(np.float32)[domain]
        if self.watch is not None:
            self.watch(float(lams.sum()) / len(lams))
        pair = torch.from_numpy(pairs).to(device, non_blocking=True)
        lam = torch.from_numpy(lams).to(device, non_blocking=True)
        logits, share = MIXERS[self.mixing](net, batch.x, pair, lam, rng)
        return mixed_risk(logits, batch.y, None, pair, share), state


@final
class DomainMix(Method):
    """Mixup across domains: every domain is mixed with the next one in a random cycle."""

    name: ClassVar[str] = "domainmix"
    paper: ClassVar[str] = "Xu et al., Adversarial domain adaptation with domain mixup, AAAI 2020"
    needs_groups: ClassVar[bool] = True

    alpha: Annotated[float, between(0.1, 4.0, log=True)] = Field(0.2, gt=0, description="λ ~ Beta(alpha, alpha)")
    mixing: Mixing = Field("input", description="what is mixed: inputs, boxes of images, or pooled features")

    def train(self, trainer: Trainer) -> Net:
        require_mixable(self.mixing, trainer)
        train, domains = trainer.task.splits["train"], trainer.task.training_groups
        objective = DomainMixup(
            domain=train.group.numpy(),
            n_domains=len(domains),
            alpha=self.alpha,
            mixing=self.mixing,
        )
        return trainer.fit(objective, sampler=Balanced(train.group))
