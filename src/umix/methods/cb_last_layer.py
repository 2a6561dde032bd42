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

import torch
from pydantic import Field
from torch import Tensor

from umix.methods.method import WEIGHTS_ONLY, Needs
from umix.methods.parts.layer_fit import LayerFit, divided, parts_of_validation
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

    def cross_fitted(self, context: Context) -> Tensor:
        """Logits of every validation example by a last layer that was trained on the other part of validation, [n, classes].

        They tell how good the method is on all of validation, while ``train`` leaves only a part of it for that.
        """
        held_out, rest, _ = parts_of_validation(context, self.share)
        (stage,) = self.erm_stages(context.settings.epochs)
        net, y = context.reference(stage), context.splits["val"].y
        logits = torch.empty(len(y), context.task.n_classes, device=y.device)
        rows = divided(y, share=self.share, seed=context.seed, what="validation")
        for (part, others), seen in zip(((held_out, rest), (rest, held_out)), rows[::-1], strict=True):
            self.fit_balanced(context.scratch(), net, part, new=True, val=others)
            logits[seen] = context.logits(net, others)
        return logits
