"""What an earlier net says of examples must be finite numbers before a method goes on from it."""

from torch import Tensor

from umix.errors import UserError


def require_finite(values: Tensor, *, what: str, stage: str) -> Tensor:
    """``values`` [n, width], which are ``what`` the net of ``stage`` says of n examples; raises if a number is not finite."""
    broken = int((~values.isfinite()).flatten(1).any(dim=1).sum())
    if broken:
        raise UserError(
            f"The {what} of stage {stage!r} must be finite numbers, but those of {broken} examples are not; try a smaller "
            f"{stage}.lr."
        )
    return values
