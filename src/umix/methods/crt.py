"""cRT: classifier retraining, a new last layer trained in class-balanced batches (Kang et al. 2020).

ERM learns the features from shuffled rows. Then they stay as they are, and a new last layer is trained on the features of the same
training rows, in batches in which all classes occur as often. Group labels are not used.

The paper is about classes of very different sizes. Where they are equal (``colored_digits``) cRT is ERM with its last layer trained
once more on rows that the net has learned by heart, and it may end below ERM, whose epoch is selected: here ERM is trained to the
end.

Differs from the paper:
- features are standardised, so learning rates differ; the rate falls along a cosine as there.

Differs from the released code:
- as above; classes take turns as there, but an epoch has as many draws as there are training rows; the released one has the number
  of classes times the size of the largest.
"""

from typing import Annotated, ClassVar, final

from pydantic import Field

from umix.methods.method import WEIGHTS_ONLY, Needs
from umix.methods.parts.layer_fit import LayerFit
from umix.settings import between
from umix.training.context import Context
from umix.training.stage import ErmStage
from umix.training.train_result import TrainResult


@final
class CRT(LayerFit):
    """Classifier retraining: an ERM net with a new last layer, trained on the same rows with all classes as often."""

    name: ClassVar[str] = "crt"
    paper: ClassVar[str] = (
        "Kang et al., Decoupling representation and classifier for long-tailed recognition, ICLR 2020"
    )
    needs: ClassVar[Needs] = WEIGHTS_ONLY
    stages: ClassVar[tuple[str, ...]] = ("reference",)

    layer_lr: Annotated[float, between(0.01, 0.3, log=True)] = Field(
        0.1, gt=0, description="learning rate of the last layer"
    )
    layer_epochs: int = Field(10, ge=1, description="epochs of the last layer")
    decay: Annotated[float, between(1e-5, 1e-2, log=True)] = Field(
        5e-4, ge=0, description="weight decay of the last layer"
    )

    def erm_stages(self, epochs: int) -> tuple[ErmStage, ...]:
        return (ErmStage("reference", epochs),)

    def train(self, context: Context) -> TrainResult:
        (stage,) = self.erm_stages(context.settings.epochs)
        rows = context.splits["train"]
        net = context.reference(stage)
        return self.fit_balanced(context, net, rows, new=True, schedule="cosine", weight_decay=self.decay)
