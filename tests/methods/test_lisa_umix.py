"""The composition of LISA and UMIX."""

from collections.abc import Callable

import pytest
import torch

from umix.methods.lisa import LISA
from umix.methods.lisa_umix import LISAUMIX
from umix.methods.umix import UMIX
from umix.training.context import Context

Make = Callable[..., Context]


@pytest.mark.parametrize("balance", [True, False])
def test_without_weights_it_is_lisa(context: Make, balance: bool) -> None:
    both = LISAUMIX(eta=0.0, length=2, balance=balance).train(context(groups=True)).net
    lisa = LISA(balance=balance).train(context(groups=True)).net
    assert all(torch.equal(a, b) for a, b in zip(both.parameters(), lisa.parameters(), strict=True))


def test_its_weights_are_those_of_umix(context: Make) -> None:
    both = LISAUMIX(eta=5.0, length=3).train(context(groups=True))
    umix = UMIX(eta=5.0, length=3).train(context())
    assert torch.equal(both.per_example["weight"], umix.per_example["weight"])
