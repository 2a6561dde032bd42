"""LDAM with deferred reweighting: rare classes get a larger margin, and late in training a larger weight (Cao et al. 2019).

min mean CE(s·(z − Δ_y e_y)) / s: the logit of the true class is lowered by its margin Δ_y = ``max_margin``·(n_min/n_y)^¼, where
n_y is the number of training examples of class y. This exponent makes the bound on the balanced test error smallest (Section 3.1).
From the share ``reweight_from`` of the epochs on, losses are weighted by the inverse effective number (1−beta)/(1−beta^n_y) of Cui
et al. 2019 (deferred reweighting, Algorithm 1): weights from the start would harm the features.

It balances classes, not groups: where all classes have the same size, all margins are equal and all weights are 1.

Differs from the paper:
- z are the logits of the net as they are, as in SubpopBench; the paper normalises features and weights of the last layer, so that z
  is a cosine, and prediction would need another last layer. Logits can grow, so a margin of 0.5 asks for less than with cosines;
- the risk is divided by s. On logits the paper's s = 30 multiplies the steps of SGD by 30, and training diverges. Divided by s,
  the loss tends to a hinge with the margin Δ_y as s grows. On the validation splits of four_moons, colored_digits, frozen features
  of birds and adult, s = 30 had the largest mean of the worst groups' rates among 1, 3, 10 and 30 (70.4; ERM 64.8). The loss has
  the probabilities softmax(s·z); those of z, which predictions are reported with, are less certain;
- a class without training examples plays no part in the margins.

Differs from the released code:
- the weights have mean 1 over the training examples. In the released code they sum to the number of classes, but then the loss of
  a batch is divided by the sum of its weights, which cancels that scale;
- deferred weights begin at a share of the epochs, in the released code at epoch 160 of 200.
"""

from typing import Annotated, ClassVar, final

import torch
from pydantic import Field

from umix.core.weights import effective_number
from umix.data.loader import n_batches
from umix.methods.method import Method
from umix.methods.parts.offset_risk import OffsetRisk, class_sizes, ldam_margins
from umix.settings import among, between
from umix.training.context import Context
from umix.training.train_result import Notes, TrainResult


@final
class LDAM(Method):
    """Label-distribution-aware margins: rare classes keep a larger distance, and weigh more in the last epochs."""

    name: ClassVar[str] = "ldam"
    paper: ClassVar[str] = (
        "Cao et al., Learning imbalanced datasets with label-distribution-aware margin loss, NeurIPS 2019"
    )
    takes_weights: ClassVar[bool] = True

    max_margin: Annotated[float, between(0.1, 0.8, log=True)] = Field(
        0.5, ge=0, description="the margin of the rarest class; 0 is cross entropy of the scaled logits"
    )
    scale: Annotated[float, among(1.0, 3.0, 10.0, 30.0)] = Field(
        30.0, gt=0, description="the paper's s: how much the loss is like a hinge; 1 is cross entropy with margins"
    )
    beta: float = Field(0.9999, ge=0, lt=1, description="of the effective number: 0 weighs all alike, 1 is the inverse")
    reweight_from: Annotated[float, among(0.5, 0.8, 1.0)] = Field(
        0.8, ge=0, le=1, description="share of the epochs before losses are weighted; 0 weighs always, 1 never"
    )

    def train(self, context: Context) -> TrainResult:
        train, settings = context.splits["train"], context.final_settings
        sizes = class_sizes(train.y, n_classes=context.task.n_classes, sample_weight=train.weight)
        weights = effective_number(train.y, beta=self.beta, sample_weight=train.weight)
        first_epoch = round(self.reweight_from * settings.epochs)
        objective = OffsetRisk(
            offset=-torch.diag(ldam_margins(sizes, largest=self.max_margin)).float().to(context.device),
            row=train.y,
            scale=self.scale,
            weights=weights,
            weights_from=first_epoch * n_batches(len(train), settings.batch_size),
        )
        return context.fit(objective).after(Notes({"weight": weights}))
