"""SELF: selective last-layer fine-tuning on the held-out rows that ERM has changed its mind about (LaBonte et al. 2023).

Validation is divided once, by class only: a part ``share`` of it trains the last layer, and only the rest is for selection. Two
ERM nets are trained: one in full, one that is stopped early. A row of the first part has the score KL(p_early ‖ p_ERM) / classes,
or the loss of ERM (``by=loss``, the paper's misclassification variant). The last layer of ERM is trained further on the ``n``
rows with the highest scores, in batches in which all classes occur as often. Group labels are not used.

With ``n`` as large as the part it is class-balanced fine-tuning. ``cb_last_layer`` is the paper's baseline. Both learn from what
validation has more of than training: the more often it shows small groups, the more they help.

Differs from the paper:
- the early net is an ERM fit of its own with a share ``early`` of the epochs, not a checkpoint on the way of the same fit; so
  where the learning rate falls over the fit, that of the early net falls too. The dropout variant is left out;
- ERM is trained on shuffled rows, in the paper on batches in which all classes occur as often;
- features are standardised, so learning rates differ; the last layer is trained for ``layer_epochs`` passes over its rows, there
  for 250 steps (images) or 500 (texts).

Differs from the released code:
- as above; there the last layer has weight decay 1e-4, here none; probabilities come from log-softmax, where a logarithm of 0
  cannot occur.
"""

from typing import Annotated, ClassVar, Literal, final

from pydantic import Field
from torch import Tensor

from umix.core.losses import cross_entropy
from umix.data.task import Split
from umix.methods.method import WEIGHTS_ONLY, Needs
from umix.methods.parts.layer_fit import LayerFit, parts_of_validation
from umix.models.model import Model
from umix.settings import among
from umix.training.context import Context
from umix.training.stage import ErmStage
from umix.training.train_result import Notes, TrainResult

By = Literal["disagreement", "loss"]


@final
class SELF(LayerFit):
    """Selective last-layer fine-tuning: on the held-out rows where an early and a trained ERM net disagree most."""

    name: ClassVar[str] = "self"
    paper: ClassVar[str] = (
        "LaBonte et al., Towards last-layer retraining for group robustness with fewer annotations, NeurIPS 2023"
    )
    needs: ClassVar[Needs] = WEIGHTS_ONLY
    stages: ClassVar[tuple[str, ...]] = ("reference", "early")

    n: Annotated[int, among(20, 100, 500)] = Field(
        500, ge=1, description="held-out rows to train on, those with the highest scores; at most all of them"
    )
    by: Annotated[By, among("disagreement", "loss")] = Field(
        "disagreement", description="score of a row: how far an early net disagrees, or the loss"
    )
    early: Annotated[float, among(0.1, 0.2, 0.5)] = Field(
        0.2, gt=0, le=1, description="share of the epochs after which the early net stops"
    )
    share: float = Field(0.5, gt=0, lt=1, description="part of validation to train on; the rest is for selection")

    def erm_stages(self, epochs: int) -> tuple[ErmStage, ...]:
        reference = ErmStage("reference", epochs)
        if self.by == "loss":
            return (reference,)
        return (reference, ErmStage("early", max(1, round(self.early * epochs))))

    def train(self, context: Context) -> TrainResult:
        held_out, rest, notes = parts_of_validation(context, self.share)
        net, *others = (context.reference(stage) for stage in self.erm_stages(context.settings.epochs))
        rows = held_out.rows(highest(self._scores(context, net, others, held_out), self.n).to(context.device))
        missing = [context.task.classes[label] for label in held_out.y.unique() if label not in rows.y]
        if missing:
            warning = (
                f"The {len(rows)} rows with the highest scores have none of {', '.join(missing)}: the last layer is trained "
                "without it; try a larger n."
            )
            notes += Notes(warnings=(warning,))
        return self.fit_balanced(context, net, rows, new=False, val=rest).after(notes)

    def _scores(self, context: Context, net: Model, others: list[Model], rows: Split) -> Tensor:
        """The score of every row, [n]."""
        logits = context.logits(net, rows).cpu()
        if not others:
            return cross_entropy(logits, rows.y.cpu())
        return disagreement(context.logits(others[0], rows).cpu(), logits)


def disagreement(early: Tensor, logits: Tensor) -> Tensor:
    """KL(p_early ‖ p) / classes of every example, float64 [n], from the ``early`` logits and ``logits`` [n, classes] of two nets.

    The score of LaBonte et al. 2023 (SELF): large where training has changed the prediction.

    >>> import torch
    >>> disagreement(torch.tensor([[0.0, 0.0]]), torch.tensor([[0.0, 0.0]])).tolist()
    [0.0]
    """
    log_early, log_p = early.double().log_softmax(1), logits.double().log_softmax(1)
    return (log_early.exp() * (log_early - log_p)).mean(1).clamp_min(0)


def highest(scores: Tensor, n: int) -> Tensor:
    """The rows of the ``n`` highest ``scores`` [rows], in order, int64; all rows if there are fewer. Of equal ones the first.

    >>> import torch
    >>> highest(torch.tensor([0.1, 0.7, 0.3, 0.7]), 2).tolist()
    [1, 3]
    """
    return scores.argsort(descending=True, stable=True)[:n].sort().values
