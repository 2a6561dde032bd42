"""uLA: logit adjustment by what a biased net predicts (Tsirigotis et al. 2023).

A biased net, which is trained for a short time, stands for the shortcut. P(y | k) is the share of class y among the training
examples for which it predicts class k. The net is trained with CE(f(x) + eta·log P(· | k(x))) and predicts with f alone: what the
shortcut says of y is accounted for, so f has to learn the rest. Group labels are not used.

Known limit: a net that fits all training examples after one epoch, as a linear head on many features can, is no shortcut. On
frozen features of birds the worst validation group has the rate 52.5 with the default and 62.1 with ERM; eta = 0.5 costs 3 points.
On four_moons, colored_digits and adult the default gains 10 to 17 points.

With one value of k, or a biased net that tells nothing of y, it is ``logit_adjustment`` with tau = eta. With eta = 0 it is ERM.

Differs from the paper:
- the biased net is an ERM net of the same architecture after ``reference_epochs``; the paper's is a linear probe on a base that
  was trained without labels (MoCoV2+), and the net starts from the same base. If the biased net is trained until it has learnt more
  than the shortcut, the correction takes away that too;
- P(y | k) is computed once, from all training examples after the biased net's last epoch; the paper has a moving average over
  batches;
- epochs are selected by the rule of the run; the paper takes the mean accuracy over the cells of k and y in validation.

Differs from the released code:
- the same; one is added to every cell of the table, which the released code does for groups that are given, so that no logarithm is
  infinite. As there, the table is made of probabilities, but the row of an example is that of its most probable class.
"""

from typing import Annotated, ClassVar, final

from pydantic import Field

from umix.methods.method import Method
from umix.methods.parts.offset_risk import OffsetRisk, log_shares_given_prediction
from umix.settings import among
from umix.training.context import Context
from umix.training.evaluate import reference_logits
from umix.training.stage import ErmStage
from umix.training.train_result import Notes, TrainResult


@final
class ULA(Method):
    """Logit adjustment without group labels: corrects for what a briefly trained, biased net predicts."""

    name: ClassVar[str] = "ula"
    paper: ClassVar[str] = "Tsirigotis et al., Group robust classification without any group information, NeurIPS 2023"
    takes_weights: ClassVar[bool] = True
    stages: ClassVar[tuple[str, ...]] = ("reference",)

    eta: Annotated[float, among(0.25, 0.5, 1.0, 2.0)] = Field(
        1.0, ge=0, description="strength of the correction; 0 is ERM"
    )
    temperature: Annotated[float, among(0.5, 1.0, 2.0)] = Field(
        1.0, gt=0, description="of the biased net's probabilities in the table; larger ones make its rows more alike"
    )
    reference_epochs: Annotated[int, among(1, 2, 5, 10)] = Field(
        1, ge=1, description="epochs of the biased net; reference.epochs overrides it"
    )

    def erm_stages(self, epochs: int) -> tuple[ErmStage, ...]:
        return (ErmStage("reference", self.reference_epochs),)

    def train(self, context: Context) -> TrainResult:
        train = context.splits["train"]
        (stage,) = self.erm_stages(context.settings.epochs)
        logits = reference_logits(context, stage)
        predicted = logits.argmax(1)
        warnings: tuple[str, ...] = ()
        if (predicted == predicted[0]).all():
            warnings = (
                "The biased net predicts one class for all training examples, so only the shares of classes are corrected for; try "
                "another reference_epochs.",
            )
        table = log_shares_given_prediction(logits, train.y, temperature=self.temperature, sample_weight=train.weight)
        objective = OffsetRisk(offset=(self.eta * table).float().to(context.device), row=predicted)
        return context.fit(objective).after(Notes({"biased_class": predicted}, warnings=warnings))
