"""Methods that go on from an earlier net refuse one that has diverged."""

from collections.abc import Callable

import pytest

from umix.errors import UserError
from umix.methods.registry import method
from umix.training.trainer import Trainer

Make = Callable[..., Trainer]


@pytest.mark.parametrize(
    "name", ["afr", "cb_last_layer", "cnc", "crt", "dfr", "eiil", "evals", "george", "self", "spare", "ula"]
)
def test_a_reference_that_has_diverged_is_refused_in_a_sentence(trainer: Make, name: str) -> None:
    run = trainer(stages={"reference": {"lr": 1e12}})
    with pytest.raises(UserError, match=r"must be finite numbers, .* try a smaller reference.lr"):
        method(name).train(run)


def test_a_net_that_is_adopted_after_it_has_diverged_is_reported(trainer: Make) -> None:
    run = trainer(stages={"reference": {"lr": 1e12}})
    method("logit_adjustment", when="post_hoc").train(run)
    assert any("not finite" in warning for warning in run.warnings)
