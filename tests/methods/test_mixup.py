"""Vanilla and in-group mixup."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from umix.data.batch import Batch
from umix.methods.mixup import Mixup, PairingWithin
from umix.methods.umix import UMIX
from umix.training.context import Context

Make = Callable[..., Context]


def test_mixup_is_umix_with_equal_weights_and_mixing_always(context: Make) -> None:
    mixup = Mixup(alpha=0.5).train(context()).net
    umix = UMIX(eta=0.0, sigma=1.0, alpha=0.5, length=2).train(context()).net
    assert all(torch.equal(a, b) for a, b in zip(mixup.parameters(), umix.parameters(), strict=True))


def test_partners_within_share_the_key_of_their_rows() -> None:
    rng = np.random.default_rng(0)
    key = rng.integers(6, size=60)
    batch = Batch(torch.zeros(20, 1), torch.zeros(20), torch.arange(0, 60, 3))
    pair = PairingWithin(key)(batch, rng)
    shown = key[::3]
    assert (shown[pair] == shown).all()
    assert not (pair == np.arange(20)).any()


def test_a_batch_of_lone_members_is_not_mixed(context: Make) -> None:
    from umix.core.losses import cross_entropy
    from umix.models.mlp import MLP
    from umix.training.mixup_risk import MixupRisk

    x, y = torch.randn(4, 3), torch.tensor([0, 1, 0, 1])
    batch = Batch(x, y, torch.arange(4))
    net = MLP(hidden=(5,)).build(x[0], 2)
    objective = MixupRisk(weights=torch.ones(4), sigma=1, alpha=1, pairing=PairingWithin(np.arange(4)))
    risk, _ = objective.risk(net, batch, {}, np.random.default_rng(0))
    assert risk.item() == pytest.approx(cross_entropy(net(x), y).mean().item(), rel=1e-6)
