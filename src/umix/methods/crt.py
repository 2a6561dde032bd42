"""cRT: classifier retraining, a new last layer trained in balanced batches or with weights (Kang et al. 2020).

ERM learns the features from shuffled rows. Then they stay as they are, and a new last layer is trained on the features of the same
training rows, in batches in which all classes occur as often. With ``by=group`` all training groups do. With ``balance=weights``
rows are shuffled, and an example of a class or group of n weighs 1/n, scaled to mean 1. SubpopBench (Yang et al. 2023) has both by
group, as CRT and ReWeightCRT.

The paper is about classes of very different sizes. Where they are equal (``colored_digits``) cRT is ERM with its last layer trained
once more on rows that the net has learned by heart, and it may end below ERM, whose epoch is selected: here ERM is trained to the
end.

Differs from the paper:
- features are standardised, so learning rates differ; the rate falls along a cosine as there;
- ``by=group`` and ``balance=weights`` are SubpopBench's.

Differs from the released code:
- as above; classes take turns as there, but an epoch has as many draws as there are training rows; the released one has the number
  of classes times the size of the largest;
- SubpopBench draws rows with replacement, by the inverse size of their group; its weights have mean 1 over groups, not rows; the
  learning rate is 0.001 and does not fall.
"""

from typing import Annotated, ClassVar, Literal, final

from pydantic import Field

from umix.core.weights import inverse_frequency
from umix.data.samplers import Balanced
from umix.methods.method import WEIGHTS_ONLY, Needs
from umix.methods.parts.layer_fit import LayerFit
from umix.settings import among, between
from umix.training.batch_risk import BatchRisk
from umix.training.context import Context
from umix.training.last_layer import fit_last_layer
from umix.training.objective import MeanRisk
from umix.training.stage import ErmStage
from umix.training.train_result import TrainResult


@final
class CRT(LayerFit):
    """Classifier retraining: an ERM net with a new last layer, trained on the same rows with classes or groups balanced."""

    name: ClassVar[str] = "crt"
    paper: ClassVar[str] = (
        "Kang et al., Decoupling representation and classifier for long-tailed recognition, ICLR 2020"
    )
    needs: ClassVar[Needs] = WEIGHTS_ONLY
    stages: ClassVar[tuple[str, ...]] = ("reference",)
    needs_groups_if: ClassVar[str] = "if by=group"

    by: Literal["class", "group"] = Field("class", description="what is balanced; group needs training groups")
    balance: Annotated[Literal["batches", "weights"], among("batches", "weights")] = Field(
        "batches", description="batches hold all classes or groups in equal parts, or losses are weighted"
    )
    layer_lr: Annotated[float, between(0.01, 0.3, log=True)] = Field(
        0.1, gt=0, description="learning rate of the last layer"
    )
    layer_epochs: int = Field(10, ge=1, description="epochs of the last layer")
    decay: Annotated[float, between(1e-5, 1e-2, log=True)] = Field(
        5e-4, ge=0, description="weight decay of the last layer"
    )

    @property
    def needs_groups(self) -> bool:  # type: ignore[override]
        return self.by == "group"

    def erm_stages(self, epochs: int) -> tuple[ErmStage, ...]:
        return (ErmStage("reference", epochs),)

    def train(self, context: Context) -> TrainResult:
        (stage,) = self.erm_stages(context.settings.epochs)
        rows = context.splits["train"]
        unit = rows.group if self.by == "group" else rows.y
        settings = self.layer_settings(context, schedule="cosine", weight_decay=self.decay)
        net = context.reference(stage)
        if self.balance == "weights":
            objective = BatchRisk(weights=inverse_frequency(unit))
            return fit_last_layer(context, net, rows, objective, settings=settings, new=True)
        return fit_last_layer(context, net, rows, MeanRisk(), settings=settings, sampler=Balanced(unit), new=True)
