"""Label smoothing: every class gets a small share of the target (Szegedy et al. 2016).

The loss is (1 − s)·CE(x, y) + s·mean over classes k of CE(x, k).

Differs from the paper: nothing.
Differs from the released code: nothing.
"""

from functools import partial
from typing import Annotated, ClassVar, final

from pydantic import Field
from torch import Tensor, nn

from umix.methods.method import Method
from umix.settings import between
from umix.training.batch_risk import BatchRisk
from umix.training.context import Context
from umix.training.train_result import TrainResult


def smoothed(logits: Tensor, y: Tensor, *, smoothing: float) -> Tensor:
    """The loss of every example, [batch]."""
    return nn.functional.cross_entropy(logits, y, reduction="none", label_smoothing=smoothing)


@final
class LabelSmoothing(Method):
    """Label smoothing: the net is not asked to be certain."""

    name: ClassVar[str] = "label_smoothing"
    paper: ClassVar[str] = "Szegedy et al., Rethinking the inception architecture for computer vision, CVPR 2016"
    takes_weights: ClassVar[bool] = True

    smoothing: Annotated[float, between(0.02, 0.4, log=True)] = Field(
        0.1, ge=0, lt=1, description="share of the target that all classes get; 0 is ERM"
    )

    def train(self, context: Context) -> TrainResult:
        return context.fit(BatchRisk(loss=partial(smoothed, smoothing=self.smoothing)))
