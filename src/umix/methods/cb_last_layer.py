"""CB-LLR: class-balanced last-layer retraining on held-out rows (LaBonte et al. 2023, the baseline of SELF).

ERM is trained on the training split. Validation is divided once, by class only: a new last layer is trained on a part ``share`` of
it, in batches in which all classes occur as often, and only the rest is for selection. Group labels are not used.

Differs from the paper:
- ERM is trained on shuffled rows, in the paper on batches in which all classes occur as often;
- features are standardised, so learning rates differ; 30 epochs without weight decay.

Differs from the released code:
- as above; there it is 100 epochs for images and 10 for texts, with weight decay 1e-4.
"""

from dataclasses import replace
from typing import ClassVar, final

import torch
from pydantic import Field
from torch import Tensor

from umix.methods.method import WEIGHTS_ONLY, Needs
from umix.methods.parts.layer_fit import LayerFit, division_of_validation
from umix.training.context import Context
from umix.training.history import HeldOutUncertainty
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
        return self.fit_after(context, HeldOutUncertainty())

    def fit_after(self, context: Context, uncertainty: HeldOutUncertainty) -> TrainResult:
        """``train`` after a stage whose ``uncertainty`` of all of validation and test is known."""
        held_out, rest, notes = division_of_validation(context, self.share)
        (stage,) = self.erm_stages(context.settings.epochs)
        net, val = context.reference(stage), context.splits["val"]
        if uncertainty.val is not None:
            uncertainty = replace(uncertainty, val=uncertainty.val[rest.to(uncertainty.val.device)])
        result = self.fit_balanced(
            context, net, val.rows(held_out), new=True, val=val.rows(rest), uncertainty=uncertainty
        )
        return result.after(notes)

    def cross_fitted(self, context: Context) -> Tensor:
        """Logits of every validation example by a last layer that was trained on the other part of validation, [n, classes].

        They tell how good the method is on all of validation, while ``train`` leaves only a part of it for that. They are those
        after the last epoch: the best would be chosen on the examples that it is judged by.
        """
        held_out, rest, _ = division_of_validation(context, self.share)
        (stage,) = self.erm_stages(context.settings.epochs)
        net, val = context.reference(stage), context.splits["val"]
        logits = torch.empty(len(val), context.task.n_classes, device=val.y.device)
        for seen, others in ((held_out, rest), (rest, held_out)):
            self.fit_balanced(context.scratch(), net, val.rows(seen), new=True, val=val.rows(others))
            logits[others] = context.logits(net, val.rows(others))
        return logits
