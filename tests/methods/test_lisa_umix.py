"""The composition of LISA and UMIX."""

from collections.abc import Callable

import pytest
import torch

from umix.methods.lisa import LISA
from umix.methods.lisa_umix import LISAUMIX
from umix.methods.umix import UMIX
from umix.training.trainer import Trainer

Make = Callable[..., Trainer]


@pytest.mark.parametrize("balance", [True, False])
def test_without_weights_it_is_lisa(trainer: Make, balance: bool) -> None:
    both = LISAUMIX(eta=0.0, length=2, balance=balance).train(trainer(groups=True))
    lisa = LISA(balance=balance).train(trainer(groups=True))
    assert all(torch.equal(a, b) for a, b in zip(both.parameters(), lisa.parameters(), strict=True))


def test_its_weights_are_those_of_umix(trainer: Make) -> None:
    both, umix = trainer(groups=True), trainer()
    LISAUMIX(eta=5.0, length=3).train(both)
    UMIX(eta=5.0, length=3).train(umix)
    assert torch.equal(both.kept["weight"], umix.kept["weight"])
