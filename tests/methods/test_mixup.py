"""Vanilla and in-group mixup."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from umix.data.batch import Batch
from umix.methods.mixup import InGroupMixup, Mixup, same_label_and_group
from umix.methods.umix import UMIX
from umix.train.trainer import Trainer

Make = Callable[..., Trainer]


def test_mixup_is_umix_with_equal_weights_and_mixing_always(trainer: Make) -> None:
    mixup = Mixup(alpha=0.5).train(trainer())
    umix = UMIX(eta=0.0, sigma=1.0, alpha=0.5, length=2).train(trainer())
    assert all(torch.equal(a, b) for a, b in zip(mixup.parameters(), umix.parameters(), strict=True))


def test_in_group_partners_share_label_and_group() -> None:
    rng = np.random.default_rng(0)
    y, group = torch.from_numpy(rng.integers(2, size=60)), torch.from_numpy(rng.integers(3, size=60))
    batch = Batch(torch.zeros(60, 1), y, torch.arange(60), group=group)
    pair = same_label_and_group(batch, rng)
    assert torch.equal(y[pair], y)
    assert torch.equal(group[pair], group)
    assert not (pair == torch.arange(60)).any()


def test_in_group_mixup_differs_from_vanilla(trainer: Make) -> None:
    vanilla = Mixup().train(trainer())
    in_group = InGroupMixup().train(trainer(groups=True))
    assert not all(torch.equal(a, b) for a, b in zip(vanilla.parameters(), in_group.parameters(), strict=True))


def test_a_batch_of_lone_members_is_not_mixed(trainer: Make) -> None:
    from umix.core.losses import cross_entropy
    from umix.methods.weighted_mixup import WeightedMixup
    from umix.nets.mlp import MLP

    x, y = torch.randn(4, 3), torch.tensor([0, 1, 0, 1])
    batch = Batch(x, y, torch.arange(4), group=torch.tensor([0, 1, 2, 3]))
    net = MLP(hidden=(5,)).build(x[0], 2)
    objective = WeightedMixup(weights=torch.ones(4), sigma=1, alpha=1, pairing=same_label_and_group, needs_groups=True)
    risk, _ = objective.risk(net, batch, {}, np.random.default_rng(0))
    assert risk.item() == pytest.approx(cross_entropy(net(x), y).mean().item(), rel=1e-6)
