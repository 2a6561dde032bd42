"""LISA's pairs and its recipe."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from umix.core.mixing import mixed_loss
from umix.data.batch import Batch
from umix.data.groups import Groups
from umix.data.samplers import Balanced, Shuffled
from umix.data.task import Task
from umix.errors import UserError
from umix.methods.lisa import LISA, GroupPairs, SelectivePairing, pair_halves
from umix.models.mlp import MLP
from umix.training.context import Context
from umix.training.mixup_risk import MixupRisk

Make = Callable[..., Context]


ATTRIBUTE = np.random.default_rng(2).integers(2, size=40)


def batch_of(n: int = 40) -> Batch:
    rng = np.random.default_rng(1)
    x, y = torch.from_numpy(rng.standard_normal((n, 3))).float(), torch.from_numpy(rng.integers(2, size=n))
    return Batch(x, y, torch.arange(n))


def pairing_of(batch: Batch, same_label: float) -> SelectivePairing:
    return SelectivePairing(same_label, batch.y.numpy(), ATTRIBUTE)


@pytest.mark.parametrize("same_label", [0.0, 1.0])
def test_pairs_share_one_and_differ_in_the_other(same_label: float) -> None:
    batch = batch_of()
    pair = pairing_of(batch, same_label)(batch, np.random.default_rng(0))
    same_y, same_a = batch.y[pair] == batch.y, torch.from_numpy(ATTRIBUTE[pair] == ATTRIBUTE)
    assert same_y.all() == bool(same_label)
    assert same_a.all() == (not same_label)
    assert (same_y ^ same_a).all()


def test_the_share_of_same_label_batches_is_its_probability() -> None:
    batch, rng = batch_of(), np.random.default_rng(0)
    pairing = pairing_of(batch, 0.3)
    share = np.mean([bool((batch.y[pairing(batch, rng)] == batch.y).all()) for _ in range(600)])
    assert share == pytest.approx(0.3, abs=0.06)


def test_the_risk_is_soft_label_cross_entropy_of_the_mixed_inputs() -> None:
    batch = batch_of()
    net, pairing = MLP(hidden=(5,)).build(batch.x[0], 2), pairing_of(batch, 0.5)
    objective = MixupRisk(weights=torch.ones(40), sigma=1, alpha=2, pairing=pairing)
    risk, _ = objective.risk(net, batch, {}, np.random.default_rng(3))
    rng = np.random.default_rng(3)
    rng.random()
    lam = rng.beta(2, 2)
    pair = pairing(batch, rng)
    logits = net(lam * batch.x + (1 - lam) * batch.x[pair])
    one_hot = torch.nn.functional.one_hot(batch.y, 2).float()
    soft = lam * one_hot + (1 - lam) * one_hot[pair]
    assert risk.item() == pytest.approx(torch.nn.functional.cross_entropy(logits, soft).item(), rel=1e-6)
    assert torch.allclose(risk, mixed_loss(logits, batch.y, torch.ones(40), torch.from_numpy(pair), lam).mean())


def test_groups_without_attributes_are_refused(context: Make, moons: Task) -> None:
    train = moons.splits["train"]
    bare = replace(train, groups=Groups(train.member, train.groups.names))
    task = Task(moons.name, {**moons.splits, "train": bare}, moons.classes)
    with pytest.raises(UserError, match="must know each example's attribute"):
        LISA().train(context(task=task, groups=True))


@pytest.mark.parametrize("balance", [True, False])
@pytest.mark.parametrize("batch_size", [32, 7, 1])
@pytest.mark.parametrize("same_label", [0.0, 1.0])
def test_halves_of_a_batch_are_pairs_from_whole_groups(
    moons: Task, balance: bool, batch_size: int, same_label: float
) -> None:
    train = moons.splits["train"]
    pairing = SelectivePairing.of(moons, same_label=same_label)
    sampler = GroupPairs(
        firsts=Balanced(train.group) if balance else Shuffled(), pairing=pairing, batch_size=batch_size
    )
    order = sampler.draw(train, np.random.default_rng(0))
    assert len(order) == sampler.size(train) == len(train)
    for index in order.split(batch_size):
        pair = pair_halves(Batch(torch.zeros(len(index), 1), train.y[index], index), np.random.default_rng(0))
        rows = index.numpy()
        both = 2 * (len(rows) // 2)
        same_y = pairing.y[rows] == pairing.y[rows[pair]]
        same_a = pairing.attribute[rows] == pairing.attribute[rows[pair]]
        assert (same_y[:both] == bool(same_label)).all()
        assert (same_a[:both] != bool(same_label)).all()
        assert (pair[both:] == np.arange(both, len(rows))).all()


def test_a_strategy_is_drawn_for_every_batch_and_partners_come_from_everywhere(moons: Task) -> None:
    train, rng = moons.splits["train"], np.random.default_rng(0)
    pairing = SelectivePairing.of(moons, same_label=0.3)
    sampler = GroupPairs(firsts=Balanced(train.group), pairing=pairing, batch_size=8)
    strategies, partners = [], set()
    for _ in range(20):
        for rows in sampler.draw(train, rng).split(8):
            half = len(rows) // 2
            same = pairing.y[rows[:half]] == pairing.y[rows[half : 2 * half]]
            assert len(set(same.tolist())) == 1
            strategies.append(bool(same[0]))
            partners |= set(rows[half:].tolist())
    assert np.mean(strategies) == pytest.approx(0.3, abs=0.08)
    assert len(partners) > 0.9 * len(train)
