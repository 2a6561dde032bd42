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
- no entropy or χ² penalty in addition to the constraint;
- alpha may be ``auto``: it is chosen on validation, from shares among which is 1, which is ERM.

Differs from the released code:
- exact χ² weights by one sort instead of bisection to a tolerance; CVaR is exact in both;
- alpha instead of rho sets the size of the χ²-ball.
"""

import abc
from functools import partial
from typing import Annotated, ClassVar, final

from pydantic import Field
from torch import Tensor

from umix.core.risks import chi2, cvar
from umix.methods.method import Method
from umix.selection.select import Auto, Candidate, resolve_auto
from umix.settings import between
from umix.training.batch_risk import BatchRisk
from umix.training.context import Context
from umix.training.stage import ErmStage
from umix.training.train_result import TrainResult

PAPER = "Levy et al., Large-scale methods for distributionally robust optimization, NeurIPS 2020"

Alpha = Annotated[float, Field(gt=0, le=1)] | Auto
_ALPHAS = (1.0, 0.8, 0.5, 0.2, 0.1)  # the first is ERM


class RobustRisk(Method, abc.ABC):
    """A method that minimises a robust risk of every batch, for subpopulations of the share ``alpha``."""

    stages: ClassVar[tuple[str, ...]] = ("trajectory",)  # trained only if alpha is auto

    alpha: Alpha  # every method gives its own description

    @staticmethod
    @abc.abstractmethod
    def risk_of(losses: Tensor, *, alpha: float) -> Tensor:
        """The robust risk of the losses of a batch."""

    def erm_stages(self, epochs: int) -> tuple[ErmStage, ...]:
        return (ErmStage("trajectory", epochs, record="online"),) if self.alpha == "auto" else ()

    def train(self, context: Context) -> TrainResult:
        if self.alpha != "auto":
            return context.fit(self._objective(self.alpha))
        (stage,) = self.erm_stages(context.settings.epochs)
        candidates = [
            Candidate(f"{self.name} alpha={alpha:g}", self.name, {f"{self.name}.alpha": alpha}, self._objective(alpha))
            for alpha in _ALPHAS
        ]
        selection = resolve_auto(self, context, candidates, erm=context.trajectory(stage))
        return selection.context.fit(selection.winner.objective).after(selection.notes)

    def _objective(self, alpha: float) -> BatchRisk:
        return BatchRisk(risk_of=partial(self.risk_of, alpha=alpha))


@final
class CVaRDRO(RobustRisk):
    """CVaR-DRO: the mean loss of the worst share of every batch."""

    name: ClassVar[str] = "cvar_dro"
    paper: ClassVar[str] = PAPER

    alpha: Annotated[Alpha, between(0.05, 0.8, log=True)] = Field(
        0.2, description="share of the batch that counts, the worst one; 1 is ERM; auto tries some on validation"
    )

    @staticmethod
    def risk_of(losses: Tensor, *, alpha: float) -> Tensor:
        return cvar(losses, alpha=alpha)


@final
class Chi2DRO(RobustRisk):
    """χ²-DRO: the worst weighted mean loss of every batch over a χ²-ball of weights."""

    name: ClassVar[str] = "chi2_dro"
    paper: ClassVar[str] = PAPER

    alpha: Annotated[Alpha, between(0.05, 0.8, log=True)] = Field(
        0.2, description="share of the smallest subpopulation that counts; 1 is ERM; auto tries some on validation"
    )

    @staticmethod
    def risk_of(losses: Tensor, *, alpha: float) -> Tensor:
        return chi2(losses, alpha=alpha)
