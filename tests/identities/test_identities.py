"""Reduction identities: a method with its parts switched off is a simpler method, bit by bit."""

from collections.abc import Callable

import pytest
import torch

from umix.methods.erm import ERM
from umix.methods.umix import UMIX
from umix.models.net import Net
from umix.training.context import Context

Make = Callable[..., Context]


def same(first: Net, second: Net) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("normalize", [True, False])
def test_umix_without_weights_and_mixing_is_erm(context: Make, seed: int, normalize: bool) -> None:
    umix = UMIX(eta=0.0, sigma=0.0, length=2, normalize=normalize).train(context(seed=seed)).net
    assert same(umix, ERM().train(context(seed=seed)).net)


def test_umix_with_weights_is_not_erm(context: Make) -> None:
    assert not same(UMIX(eta=5.0, sigma=0.0, length=2).train(context()).net, ERM().train(context()).net)


def test_umix_with_mixing_is_not_erm(context: Make) -> None:
    assert not same(UMIX(eta=0.0, sigma=1.0, length=2).train(context()).net, ERM().train(context()).net)
