"""Logit adjustment: predictions as if all classes were equally frequent (Menon et al. 2021).

With π_y the share of class y in the training data, the classifier with the smallest mean error over classes is the argmax of
log p(y|x) − log π_y. There are two ways to it:

- ``trained``: min mean CE(z + tau·log π) and predict with z (eq. 10);
- ``post_hoc``: train z by ERM and predict with z − tau·log π (eq. 9). Here tau·log π is subtracted from the biases of the
  last layer.

If the last layer has a bias, both have the same optimum: z' = z + tau·log π is what ERM trains, and a bias can express the
difference. Without weight decay, training from a bias that is tau·log π smaller is ERM with the adjustment, step by step. They
differ where training ends before the bias has moved far enough, and in nets that fit all training examples.

It balances classes, not groups: where all classes have the same size it is ERM. Where the worst group belongs to the largest class,
it gets worse: on frozen features of birds it has the validation rate 54.9, with ERM 62.1. Reweighting by class does the same.
On adult, whose worst group is in the smaller class, it gains 13 points.
With ``post_hoc`` the model after the last epoch is adjusted and judged once, so no epoch is selected.

Differs from the paper:
- a class without training examples has the share of the largest one, so that it is never raised; log 0 has no meaning.

Differs from the released code:
- the same.
"""

from typing import Annotated, ClassVar, Literal, final

import torch
from pydantic import Field
from torch import Tensor

from umix.errors import UserError
from umix.methods.method import WEIGHTS_ONLY, Method, Needs
from umix.methods.parts.offset_risk import OffsetRisk, class_sizes, log_shares
from umix.settings import between
from umix.training.context import Context
from umix.training.last_layer import linear_head
from umix.training.stage import ErmStage
from umix.training.train_result import TrainResult


def class_log_shares(context: Context) -> Tensor:
    """The logarithms of the shares π_y of all classes in the training split, float32 [classes], on the context's device."""
    train = context.splits["train"]
    sizes = class_sizes(train.y, n_classes=context.task.n_classes, sample_weight=train.weight)
    return log_shares(sizes).float().to(context.device)


@final
class LogitAdjustment(Method):
    """Logit adjustment: the logits are corrected for the shares of the classes, in training or afterwards."""

    name: ClassVar[str] = "logit_adjustment"
    paper: ClassVar[str] = "Menon et al., Long-tail learning via logit adjustment, ICLR 2021"
    takes_weights: ClassVar[bool] = True
    needs: ClassVar[Needs] = WEIGHTS_ONLY
    stages: ClassVar[tuple[str, ...]] = ("reference",)

    tau: Annotated[float, between(0.25, 2.0, log=True)] = Field(
        1.0, ge=0, description="strength of the correction: 1 balances the classes, 0 is ERM"
    )
    when: Literal["trained", "post_hoc"] = Field(
        "trained", description="correct the logits in training, or those of an ERM model, which may be trees"
    )

    def erm_stages(self, epochs: int) -> tuple[ErmStage, ...]:
        return (ErmStage("reference", epochs),) if self.when == "post_hoc" else ()

    def train(self, context: Context) -> TrainResult:
        offset = self.tau * class_log_shares(context)
        if self.when == "trained":
            objective = OffsetRisk(offset=offset)
            if not context.can_train(objective):
                raise UserError(
                    f"logit_adjustment.when must be post_hoc for {context.net.title}, which has no gradient steps, got trained."
                )
            return context.fit(objective)
        (stage,) = self.erm_stages(context.settings.epochs)
        net = context.reference(stage)
        head = linear_head(net, otherwise="set logit_adjustment.when=trained")
        with torch.no_grad():
            head.bias.sub_(offset)
        return context.adopt(net)
