"""Empirical risk minimisation: the mean loss over the training examples (Vapnik 1992).

Differs from the paper: nothing.
Differs from the released code: nothing.
"""

from typing import ClassVar, final

from umix.methods.method import WEIGHTS_ONLY, Method, Needs
from umix.training.context import Context
from umix.training.objective import MeanRisk
from umix.training.train_result import TrainResult


@final
class ERM(Method):
    """Empirical risk minimisation: every example counts the same."""

    name: ClassVar[str] = "erm"
    paper: ClassVar[str] = "Vapnik, Principles of risk minimization for learning theory, NeurIPS 1992"
    takes_weights: ClassVar[bool] = True
    needs: ClassVar[Needs] = WEIGHTS_ONLY

    def train(self, context: Context) -> TrainResult:
        return context.fit(MeanRisk())
