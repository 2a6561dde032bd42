"""DORO: distributionally and outlier robust optimisation (Zhai et al. 2021).

DRO gives outliers the largest weights, because they have the largest losses. DORO treats a share
epsilon of the training distribution as outliers and minimises the robust risk of the rest.
Algorithm 1: in every batch, drop the share epsilon with the largest losses, then descend the CVaR
or χ² risk of the others (``dro.py`` explains both, and alpha). ``epsilon=0`` is DRO.

Differs from the paper:
- if epsilon·batch is not a whole number, the example at the border is dropped in part: it keeps a
  fraction of its weight. The same holds at the border of CVaR.

Differs from the released code:
- fractions as above; the released code rounds down, so small batches have no outlier at all, and a
  CVaR over no example;
- exact χ² weights by one sort, instead of a scalar optimiser that copies the loss from the device.
"""

from functools import partial
from typing import Annotated, ClassVar, final

from pydantic import Field

from umix.core.risks import chi2_doro, cvar_doro
from umix.methods.method import Method
from umix.settings import among, between
from umix.training.batch_risk import BatchRisk
from umix.training.context import Context
from umix.training.train_result import TrainResult

PAPER = "Zhai et al., DORO: Distributional and outlier robust optimization, ICML 2021"


@final
class CVaRDORO(Method):
    """CVaR-DORO: the mean loss of the worst share of every batch, once the very worst are dropped as outliers."""

    name: ClassVar[str] = "cvar_doro"
    paper: ClassVar[str] = PAPER

    alpha: Annotated[float, between(0.05, 0.8, log=True)] = Field(
        0.2, gt=0, le=1, description="share of what is left that counts, the worst one"
    )
    epsilon: Annotated[float, among(0.005, 0.01, 0.02, 0.05)] = Field(
        0.01, ge=0, lt=1, description="share of the batch that is dropped; 0 is CVaR-DRO"
    )

    def train(self, context: Context) -> TrainResult:
        return context.fit(BatchRisk(risk_of=partial(cvar_doro, alpha=self.alpha, epsilon=self.epsilon)))


@final
class Chi2DORO(Method):
    """χ²-DORO: the worst weighted mean loss over a χ²-ball, once the largest losses are dropped as outliers."""

    name: ClassVar[str] = "chi2_doro"
    paper: ClassVar[str] = PAPER

    alpha: Annotated[float, between(0.05, 0.8, log=True)] = Field(
        0.2, gt=0, le=1, description="share of the smallest subpopulation that counts, of what is left"
    )
    epsilon: Annotated[float, among(0.005, 0.01, 0.02, 0.05)] = Field(
        0.01, ge=0, lt=1, description="share of the batch that is dropped; 0 is χ²-DRO"
    )

    def train(self, context: Context) -> TrainResult:
        return context.fit(BatchRisk(risk_of=partial(chi2_doro, alpha=self.alpha, epsilon=self.epsilon)))
