"""What must be finite before a method goes on."""

import pytest
import torch

from umix.errors import UserError
from umix.training.finite_outputs import require_finite


def test_outputs_that_are_not_finite_are_refused_in_a_sentence() -> None:
    z = torch.tensor([[0.0, 1.0], [float("nan"), 1.0], [float("inf"), 1.0]])
    with pytest.raises(UserError, match=r"The features of stage 'reference' must be finite numbers, .* of 2 examples"):
        require_finite(z, what="features", stage="reference")
    assert require_finite(z[:1], what="features", stage="reference") is not None
