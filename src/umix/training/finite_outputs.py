"""What an earlier net says of examples must be finite numbers before a method goes on from it."""

from typing import TYPE_CHECKING

from torch import Tensor

from umix.errors import UserError
from umix.training.stage import ErmStage

if TYPE_CHECKING:
    from umix.training.trainer import Trainer


def require_finite(values: Tensor, *, what: str, stage: str) -> Tensor:
    """``values`` [n, width], which are ``what`` the net of ``stage`` says of n examples; raises if a number is not finite."""
    broken = int((~values.isfinite()).flatten(1).any(dim=1).sum())
    if broken:
        raise UserError(
            f"The {what} of stage {stage!r} must be finite numbers, but those of {broken} examples are not; try a smaller "
            f"{stage}.lr."
        )
    return values


def reference_logits(trainer: "Trainer", stage: ErmStage) -> Tensor:
    """The logits of the net at the end of ``stage`` for every training example, [n, classes]; raises if one is not finite."""
    return require_finite(trainer.logits(trainer.reference(stage), "train"), what="logits", stage=stage.name)
