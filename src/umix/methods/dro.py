"""CVaR and χ² distributionally robust optimisation (Levy et al. 2020).

Minimise the largest expected loss over distributions q near the training distribution. For CVaR
these are all q with q_i ≤ 1/(alpha·n), so the risk is the mean of the worst share alpha of the
losses. For χ² these are all q with ½·mean (n·q−1)² ≤ rho. The mini-batch estimator (Section 3)
takes the robust risk of each batch as if the batch were the training set.

In both, ``alpha`` is the share of the smallest subpopulation that should do well. As in Hashimoto
et al. 2018, rho = ½(1/alpha−1)², and the χ²-ball then contains every subpopulation of share alpha ≤
½. With the default 0.2, 13 examples of a batch of 64 count, which is enough for a useful gradient;
0.1 and 0.2 are the most common values.

Differs from the paper:
- only the mini-batch estimator, whose bias falls with the batch size; the multilevel Monte Carlo
  estimator is left out;
- no entropy or χ² penalty in addition to the constraint.

Differs from the released code:
- exact χ² weights by one sort instead of bisection to a tolerance; CVaR is exact in both;
- alpha instead of rho sets the size of the χ²-ball.
"""

from functools import partial
from typing import Annotated, ClassVar, final

from pydantic import Field

from umix.core.risks import chi2, cvar
from umix.methods.method import Method
from umix.methods.parts.batch_risk import BatchRisk
from umix.nets.net import Net
from umix.settings import between
from umix.training.trainer import Trainer

PAPER = "Levy et al., Large-scale methods for distributionally robust optimization, NeurIPS 2020"


@final
class CVaRDRO(Method):
    """CVaR-DRO: the mean loss of the worst share of every batch."""

    name: ClassVar[str] = "cvar_dro"
    paper: ClassVar[str] = PAPER

    alpha: Annotated[float, between(0.05, 0.8, log=True)] = Field(
        0.2, gt=0, le=1, description="share of the batch that counts, the worst one; 1 is ERM"
    )

    def train(self, trainer: Trainer) -> Net:
        return trainer.fit(BatchRisk(risk_of=partial(cvar, alpha=self.alpha)))


@final
class Chi2DRO(Method):
    """χ²-DRO: the worst weighted mean loss of every batch over a χ²-ball of weights."""

    name: ClassVar[str] = "chi2_dro"
    paper: ClassVar[str] = PAPER

    alpha: Annotated[float, between(0.05, 0.8, log=True)] = Field(
        0.2, gt=0, le=1, description="share of the smallest subpopulation that counts; 1 is ERM"
    )

    def train(self, trainer: Trainer) -> Net:
        return trainer.fit(BatchRisk(risk_of=partial(chi2, alpha=self.alpha)))
