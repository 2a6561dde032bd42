"""V-REx: make the risks of all environments equal (Krueger et al. 2021).

min mean_e L_e + w·Var_e(L_e). Differences between training environments may be larger in new
environments, so a net with equal risks in all training environments is expected to keep its risk
there. w is 1 for the first ``anneal`` steps, then ``penalty``; the optimiser's state is reset at
this step. If w > 1, the whole risk is divided by w.

Environments are the values of the attribute; with ``domains=group`` they are the training groups.
Batches hold them in equal parts, as in DomainBed.

Differs from the paper:
- the risks of the environments are averaged, not summed, so that their number does not change the
  effective learning rate.

Differs from the released code:
- the authors' coloured-MNIST script divides by w as here; DomainBed does not: this makes little
  difference to Adam, but the steps of SGD grow with w until training diverges.
"""

from typing import Annotated, ClassVar, final

from pydantic import Field
from torch import Tensor

from umix.core.environments import Environments, vrex_risk
from umix.core.losses import cross_entropy
from umix.methods.irm import fit_annealed
from umix.methods.parts.domains import ComparesDomains
from umix.settings import among, between
from umix.training.context import Context
from umix.training.train_result import TrainResult


def risk_variance(logits: Tensor, y: Tensor, among: Environments, *, weight: float, penalty: float) -> Tensor:
    """``weight``·mean_e L_e + ``penalty``·Var_e(L_e), a scalar."""
    return vrex_risk(cross_entropy(logits, y), among, weight=weight, penalty=penalty)


@final
class VREx(ComparesDomains):
    """Risk extrapolation: environments may not differ in their risk."""

    name: ClassVar[str] = "vrex"
    paper: ClassVar[str] = "Krueger et al., Out-of-distribution generalization via risk extrapolation (REx), ICML 2021"

    penalty: Annotated[float, between(0.1, 100.0, log=True)] = Field(
        10.0, ge=0, description="weight of the variance after annealing (the paper's beta)"
    )
    anneal: Annotated[int, among(0, 100, 300, 500)] = Field(
        500, ge=0, description="steps with penalty weight 1; then the optimiser starts anew"
    )

    def train(self, context: Context) -> TrainResult:
        return fit_annealed(risk_variance, context, self.domains_of(context), penalty=self.penalty, anneal=self.anneal)
