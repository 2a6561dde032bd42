"""CB-LLR: class-balanced last-layer retraining on held-out rows (LaBonte et al. 2023, the baseline of SELF).

ERM is trained on the training split. Validation is divided once, by class only: a new last layer is trained on a part ``share`` of
it, in batches in which all classes occur as often, and only the rest is for selection. Group labels are not used.

Differs from the paper:
- ERM is trained on shuffled rows, in the paper on batches in which all classes occur as often;
- features are standardised, so learning rates differ; 30 epochs without weight decay.

Differs from the released code:
- as above; there it is 100 epochs for images and 10 for texts, with weight decay 1e-4.
"""

from typing import ClassVar, final

from pydantic import Field

from umix.methods.method import WEIGHTS_ONLY, Needs
from umix.methods.parts.layer_fit import LayerFit, parts_of_validation
from umix.training.context import Context
from umix.training.stage import ErmStage
from umix.training.train_result import TrainResult


@final
class CBLastLayer(LayerFit):
    """Class-balanced last-layer retraining: an ERM net with a new last layer, trained on held-out rows."""

    name: ClassVar[str] = "cb_last_layer"
    paper: ClassVar[str] = (
        "LaBonte et al., Towards last-layer retraining for group robustness with fewer annotations, NeurIPS 2023"
    )
    needs: ClassVar[Needs] = WEIGHTS_ONLY
    stages: ClassVar[tuple[str, ...]] = ("reference",)

    share: float = Field(0.5, gt=0, lt=1, description="part of validation to train on; the rest is for selection")

    def erm_stages(self, epochs: int) -> tuple[ErmStage, ...]:
        return (ErmStage("reference", epochs),)

    def train(self, context: Context) -> TrainResult:
        held_out, rest, notes = parts_of_validation(context, self.share)
        (stage,) = self.erm_stages(context.settings.epochs)
        return self.fit_balanced(context, context.reference(stage), held_out, new=True, val=rest).after(notes)
