"""IB-IRM: IRM with an information bottleneck (Ahuja et al. 2021).

Invariance alone does not remove all spurious features. Among the invariant predictors, IB-IRM
prefers one whose features have low entropy, which is bounded by their variance. With the
features φ = net.features(x) the risk is

    mean_e L_e + w·mean_e pen_e + β·mean_e mean_d Var_e(φ_d),

that is, the risk of IRM (see ``irm``) and the variance within an environment, averaged over
dimensions. β is 0 for the first ``bottleneck_anneal`` steps, then ``bottleneck``. The optimiser's
state is reset when w or β changes. The whole risk is divided by the largest of 1, w and β.

Environments are the values of the attribute; with ``domains=group`` they are the training groups.
Batches hold them in equal parts, as in DomainBed.

Differs from the paper:
- environments are averaged, not summed; an environment with a single example in the batch has no
  penalty and no variance.

Differs from the released code:
- the released code does not divide the risk: this makes little difference to Adam, but the steps of
  SGD grow with the weights until training diverges; penalty 10 instead of 100, as for IRM;
- with ``bottleneck=0`` the optimiser is not reset at ``bottleneck_anneal``, because nothing changes
  there.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, final

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from umix.core.environments import irm_risk, mean_bottleneck
from umix.data.batch import Batch
from umix.data.samplers import Balanced
from umix.methods.parts.domains import ComparesDomains, Domains
from umix.models.model import Model
from umix.settings import among, between
from umix.training.context import Context
from umix.training.objective import Objective, State
from umix.training.train_result import TrainResult


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class BottleneckRisk(Objective):
    """IRM's risk plus β times the variance of the features.

    β is 0, and ``bottleneck`` from step ``bottleneck_anneal`` on.
    """

    domains: Domains
    penalty: float
    anneal: int
    bottleneck: float
    bottleneck_anneal: int

    @property
    def reset_at(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.anneal, self.bottleneck_anneal) if self.bottleneck else (self.anneal,)

    def risk(self, net: Model, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        features = net.features(batch.x)
        logits = net.head(features)
        among = self.domains.of(batch, like=logits)
        weight = self.penalty if batch.step >= self.anneal else 1.0
        narrow = self.bottleneck if batch.step >= self.bottleneck_anneal else 0.0
        scale = 1 / max(weight, narrow, 1.0)
        risk = irm_risk(logits, batch.y, among, weight=scale, penalty=scale * weight)
        if narrow:
            risk = torch.add(risk, mean_bottleneck(features, among), alpha=scale * narrow)
        return risk, state


@final
class IBIRM(ComparesDomains):
    """Invariant risk minimisation with an information bottleneck: of invariant features, those that vary least."""

    name: ClassVar[str] = "ib_irm"
    paper: ClassVar[str] = (
        "Ahuja et al., Invariance principle meets information bottleneck for out-of-distribution generalization, NeurIPS 2021"
    )

    penalty: Annotated[float, between(1.0, 100.0, log=True)] = Field(
        10.0, ge=0, description="weight of IRM's penalty after annealing (the paper's lambda)"
    )
    anneal: Annotated[int, among(0, 100, 300, 500)] = Field(
        500, ge=0, description="steps with penalty weight 1; then the optimiser starts anew"
    )
    bottleneck: Annotated[float, between(0.1, 100.0, log=True)] = Field(
        100.0, ge=0, description="weight of the features' variance after annealing; 0 is IRM"
    )
    bottleneck_anneal: int = Field(500, ge=0, description="steps without bottleneck; then the optimiser starts anew")

    def train(self, context: Context) -> TrainResult:
        domains = self.domains_of(context)
        objective = BottleneckRisk(
            domains=domains,
            penalty=self.penalty,
            anneal=self.anneal,
            bottleneck=self.bottleneck,
            bottleneck_anneal=self.bottleneck_anneal,
        )
        return context.fit(objective, sampler=Balanced(domains.ids))
