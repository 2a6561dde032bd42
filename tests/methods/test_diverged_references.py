"""Methods that go on from an earlier net refuse one that has diverged."""

from collections.abc import Callable

import pytest

from umix.errors import UserError
from umix.methods.registry import method
from umix.training.context import Context

Make = Callable[..., Context]


@pytest.mark.parametrize(
    "name", ["afr", "cb_last_layer", "cnc", "crt", "dfr", "eiil", "evals", "george", "self", "spare", "ula"]
)
def test_a_reference_that_has_diverged_is_refused_in_a_sentence(context: Make, name: str) -> None:
    run = context(stages={"reference": {"lr": 1e12}})
    with pytest.raises(UserError, match=r"must be finite numbers, .* try a smaller reference.lr"):
        method(name).train(run)


def test_a_net_that_is_adopted_after_it_has_diverged_is_reported(context: Make) -> None:
    run = context(stages={"reference": {"lr": 1e12}})
    result = method("logit_adjustment", when="post_hoc").train(run)
    assert any("not finite" in warning for warning in result.warnings)
