"""The example keeps the contract of every method, and is ERM without smoothing."""

import torch
from umix_example.label_smoothing import LabelSmoothing, smoothed

from umix.core.losses import cross_entropy
from umix.testing import check_method


def test_it_keeps_the_contract_of_every_method() -> None:
    check_method(LabelSmoothing())


def test_without_smoothing_the_loss_is_cross_entropy() -> None:
    logits, y = torch.tensor([[2.0, -1.0], [0.5, 0.0]]), torch.tensor([0, 1])
    assert torch.equal(smoothed(logits, y, smoothing=0.0), cross_entropy(logits, y))
