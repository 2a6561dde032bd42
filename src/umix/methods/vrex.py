"""V-REx: make the risks of all environments equal (Krueger et al. 2021).

min mean_e L_e + w·Var_e(L_e). Differences between training environments may be larger in new
environments, so a net with equal risks in all training environments is expected to keep its risk
there. w is 1 for the first ``anneal`` steps, then ``penalty``; the optimiser's state is reset at
this step. If w > 1, the whole risk is divided by w.

Environments are the task's training groups, and batches hold them in equal parts, as in WILDS.

Differs from the paper:
- the risks of the environments are averaged, not summed, so that their number does not change the
  effective learning rate.

Differs from the released code:
- the authors' coloured-MNIST script divides by w as here; DomainBed does not: this makes little
  difference to Adam, but the steps of SGD grow with w until training diverges.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, final

import numpy as np
from pydantic import Field
from torch import Tensor

from umix.core.environments import environments, vrex_risk
from umix.core.losses import cross_entropy
from umix.data.batch import Batch
from umix.data.samplers import Balanced
from umix.methods.method import Method
from umix.nets.net import Net
from umix.settings import among, between
from umix.training.objective import Objective, State
from umix.training.trainer import Trainer


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class RiskVariance(Objective):
    """(mean_e L_e + w·Var_e(L_e)) / max(w, 1), where w is 1, and ``penalty`` from step ``anneal`` on."""

    n_groups: int
    penalty: float
    anneal: int
    needs_groups: bool = True

    @property
    def reset_at(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.anneal,)

    def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        losses = cross_entropy(net(batch.x), batch.y)
        among = environments(batch.known_group(), n_groups=self.n_groups, like=losses)
        weight = self.penalty if batch.step >= self.anneal else 1.0
        scale = 1 / max(weight, 1.0)
        return vrex_risk(losses, among, weight=scale, penalty=scale * weight), state


@final
class VREx(Method):
    """Risk extrapolation: environments may not differ in their risk."""

    name: ClassVar[str] = "vrex"
    paper: ClassVar[str] = "Krueger et al., Out-of-distribution generalization via risk extrapolation (REx), ICML 2021"
    needs_groups: ClassVar[bool] = True

    penalty: Annotated[float, between(0.1, 100.0, log=True)] = Field(
        10.0, ge=0, description="weight of the variance after annealing (the paper's beta)"
    )
    anneal: Annotated[int, among(0, 100, 300, 500)] = Field(
        500, ge=0, description="steps with penalty weight 1; then the optimiser starts anew"
    )

    def train(self, trainer: Trainer) -> Net:
        n_groups = len(trainer.task.training_groups)
        objective = RiskVariance(n_groups=n_groups, penalty=self.penalty, anneal=self.anneal)
        return trainer.fit(objective, sampler=Balanced(trainer.splits["train"].group))
