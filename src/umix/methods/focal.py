"""Focal loss: examples that are predicted correctly with confidence count less (Lin et al. 2017).

With p the probability of the true class, FL(p) = −α·(1−p)^gamma·log p (eq. 5; eq. 4 is without α);
gamma = 0 is cross entropy. The class weights α come from the training labels: 1/n_y (``inverse``)
or the effective number of examples of Cui et al. 2019, (1−beta)/(1−beta^n_y) (``effective``). They
are scaled to mean 1 over the training examples, so that they do not change the effective learning
rate.

Differs from the paper:
- softmax over classes instead of one sigmoid per class, and the mean over examples instead of the
  sum over anchor boxes divided by the number of objects: this is classification, not detection;
- α is computed from the labels instead of set by hand; ``none`` leaves it out.

Differs from the released code:
- the same, and the gradient at p = 1 is 0 for every gamma > 0, also where gamma < 1.
"""

from functools import partial
from typing import Annotated, ClassVar, Literal, final

from pydantic import Field
from torch import Tensor

from umix.core.losses import focal
from umix.core.weights import effective_number, inverse_frequency
from umix.data.task import Split
from umix.methods.method import Method
from umix.settings import among, between
from umix.training.batch_risk import BatchRisk
from umix.training.context import Context
from umix.training.train_result import Notes, TrainResult


@final
class Focal(Method):
    """Focal loss: hard examples count more, optionally rare classes too."""

    name: ClassVar[str] = "focal"
    paper: ClassVar[str] = "Lin et al., Focal loss for dense object detection, ICCV 2017"
    takes_weights: ClassVar[bool] = True

    gamma: Annotated[float, between(0.5, 5.0, log=True)] = Field(
        2.0, ge=0, description="how much easy examples are played down; 0 is cross entropy"
    )
    class_balance: Annotated[Literal["none", "inverse", "effective"], among("none", "inverse", "effective")] = Field(
        "none", description="class weights: none, inverse frequency, or inverse effective number"
    )
    beta: float = Field(0.999, ge=0, lt=1, description="of the effective number: 0 weighs all alike, 1 is the inverse")

    def train(self, context: Context) -> TrainResult:
        weights = self._class_weights(context.splits["train"])
        result = context.fit(BatchRisk(loss=partial(focal, gamma=self.gamma), weights=weights))
        return result if weights is None else result.after(Notes({"weight": weights}))

    def _class_weights(self, train: Split) -> Tensor | None:
        match self.class_balance:
            case "none":
                return None
            case "inverse":
                return inverse_frequency(train.y, sample_weight=train.weight)
            case "effective":
                return effective_number(train.y, beta=self.beta, sample_weight=train.weight)
