"""Fish: gradients of different domains should point the same way (Shi et al. 2022).

Algorithm 1: start from the parameters θ and take one step of the inner optimiser on each domain in
turn, in random order. This ends at θ̃. Then θ ← θ + ε·(θ̃ − θ). To first order this raises the
inner products of the domains' gradients and lowers the mean risk (Theorem 3.1), without second
derivatives. The first ``warmup`` steps are ordinary ERM steps on the whole batch.

Domains are the task's training groups, and batches hold them in equal parts, as in WILDS. Each
domain's part of a batch makes one inner step. So an inner step has batch size / domains examples,
and a batch costs one forward and backward pass per domain.

Differs from the paper:
- every meta step uses all domains in the batch, instead of a sample of the domains.

Differs from the released code:
- ``meta_lr`` is ε itself; the authors' code divides its setting by the number of inner steps
  (CivilComments 0.05/5, Camelyon17 0.01/3), after 20,000 and 10,000 steps of warm-up; the default
  here is DomainBed's, which has no warm-up;
- the state of the inner optimiser is kept for the whole fit; the released code resets it at every
  epoch;
- the warm-up is part of the fit, and training continues from its last step instead of the best one
  on validation;
- only parameters are interpolated; running statistics keep the values of the inner steps, so
  counters stay whole numbers.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, final

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn.functional import cross_entropy

from umix.data.batch import Batch
from umix.data.samplers import Balanced
from umix.methods.method import Method
from umix.models.model import Model
from umix.settings import among
from umix.training.context import Context
from umix.training.engine import Prepared
from umix.training.loop import descend
from umix.training.objective import Objective, State
from umix.training.train_result import TrainResult


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class FreshRisk(Objective):
    """The mean loss; the optimiser's state is reset after the ``warmup``."""

    warmup: int

    @property
    def reset_at(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.warmup,)

    def risk(self, net: Model, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        return cross_entropy(net(batch.x), batch.y), state


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class MetaStep:
    """One inner step per domain of the batch, then a move from the start of these steps towards their end by ``meta_lr``.

    ``domain`` [n] is the domain of each training example.
    """

    domain: NDArray[np.int64]
    meta_lr: float
    warmup: int

    def __call__(
        self,
        prepared: Prepared,
        objective: Objective,
        batch: Batch,
        state: State,
        rng: np.random.Generator,
        clip_norm: float | None = None,
    ) -> State:
        if batch.step < self.warmup:
            return descend(prepared, objective, batch, state, rng, clip_norm)
        parameters = list(prepared.net.parameters())
        before = [parameter.detach().clone() for parameter in parameters]
        for part in self.parts(batch, rng):
            state = descend(prepared, objective, part, state, rng, clip_norm)
        with torch.no_grad():
            for parameter, start in zip(parameters, before, strict=True):
                parameter.lerp_(start, 1 - self.meta_lr)  # θ̃ + (1 − ε)(θ − θ̃): exactly θ̃ for ε = 1
        return state

    def parts(self, batch: Batch, rng: np.random.Generator) -> list[Batch]:
        """The batch split by domain, in random order, without domains that it does not contain."""
        domain = self.domain[batch.host_rows()]
        places = [torch.from_numpy(np.flatnonzero(domain == d)) for d in rng.permutation(np.unique(domain))]
        return [_rows(batch, place.to(batch.y.device, non_blocking=True)) for place in places]


def _rows(batch: Batch, place: Tensor) -> Batch:
    x, y, index = (tensor.index_select(0, place) for tensor in (batch.x, batch.y, batch.index))
    return Batch(x, y, index, batch.step)


@final
class Fish(Method):
    """Gradient matching: steps that agree across domains."""

    name: ClassVar[str] = "fish"
    paper: ClassVar[str] = "Shi et al., Gradient matching for domain generalization, ICLR 2022"
    needs_groups: ClassVar[bool] = True

    meta_lr: Annotated[float, among(0.05, 0.1, 0.25, 0.5, 1.0)] = Field(
        0.5, gt=0, le=1, description="ε: share of the way to the inner steps' end"
    )
    warmup: int = Field(0, ge=0, description="steps of ERM before the first meta step; then the optimiser starts anew")

    def train(self, context: Context) -> TrainResult:
        group = context.task.splits["train"].group
        step = MetaStep(domain=group.numpy(), meta_lr=self.meta_lr, warmup=self.warmup)
        return context.fit(FreshRisk(warmup=self.warmup), sampler=Balanced(group), step=step)
