"""Fish's meta step, its warm-up and what it is on one domain."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from umix.data.batch import Batch
from umix.data.groups import Groups
from umix.data.samplers import Balanced
from umix.data.task import Task
from umix.methods.fish import Fish, FreshRisk, MetaStep
from umix.models.net import Net
from umix.training.context import Context
from umix.training.engine import Engine, Prepared
from umix.training.objective import MeanRisk

Make = Callable[..., Context]


def batch_of(group: np.ndarray, *, step: int = 0) -> Batch:
    rng, n = np.random.default_rng(1), len(group)
    x, y = torch.from_numpy(rng.standard_normal((n, 3))), torch.from_numpy(rng.integers(2, size=n))
    return Batch(x, y, torch.arange(n), step)


def prepared_of(net: Net, *, momentum: float = 0.0) -> Prepared:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=momentum)
    return Engine("cpu").prepare(net, optimizer, precision="32-true")


def same(first: Net, second: Net) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def one_domain(task: Task) -> Task:
    train = task.splits["train"]
    groups = Groups.from_ids(torch.zeros(len(train), dtype=torch.int64), task.groups)
    return Task(task.name, {**task.splits, "train": replace(train, groups=groups)}, task.classes)


@pytest.mark.parametrize(
    "fit", [{}, {"optimizer": "adam"}, {"clip_norm": 0.1, "weight_decay": 0.01}], ids=["sgd", "adam", "clipped"]
)
def test_one_domain_and_the_whole_way_is_erm_bit_by_bit(context: Make, moons: Task, fit: dict[str, object]) -> None:
    task = one_domain(moons)
    fish = Fish(meta_lr=1.0).train(context(task=task, groups=True, fit=fit)).net
    erm = context(task=task, fit=fit).fit(MeanRisk(), sampler=Balanced(task.splits["train"].group)).net
    assert same(fish, erm)


def test_warm_up_is_erm_on_balanced_batches_bit_by_bit(context: Make, moons: Task) -> None:
    fish = Fish(warmup=1000).train(context(groups=True)).net
    assert same(fish, context().fit(MeanRisk(), sampler=Balanced(moons.splits["train"].group)).net)
    assert not same(fish, Fish(warmup=3).train(context(groups=True)).net)


def gradient(theta: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    z = x @ theta.T
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    return (p - np.eye(2)[y]).T @ x / len(x)


@pytest.mark.parametrize("meta_lr", [0.01, 0.5, 1.0])
def test_a_meta_step_is_that_of_numpy(meta_lr: float) -> None:
    group = np.array([4, 1, 1, 4, 4, 2, 1])
    batch, net = batch_of(group), Net(nn.Identity(), nn.Linear(3, 2, bias=False).double())
    start = net.head.weight.detach().numpy().copy()
    MetaStep(domain=group, meta_lr=meta_lr, warmup=0)(
        prepared_of(net), FreshRisk(warmup=0), batch, {}, np.random.default_rng(7)
    )
    theta = start
    for domain in np.random.default_rng(7).permutation(np.unique(group)):
        rows = group == domain
        theta = theta - 0.1 * gradient(theta, batch.x.numpy()[rows], batch.y.numpy()[rows])
    np.testing.assert_allclose(net.head.weight.detach().numpy(), start + meta_lr * (theta - start), rtol=1e-12)


def test_every_domain_of_the_batch_has_its_part_once_in_random_order() -> None:
    group, step = np.array([4, 1, 1, 4, 4, 2, 1]), MetaStep(domain=np.arange(9) % 5, meta_lr=0.5, warmup=0)
    batch = replace(batch_of(group), index=torch.from_numpy(group), step=3)
    orders = set()
    for seed in range(20):
        parts = step.parts(batch, np.random.default_rng(seed))
        orders.add(tuple(int(part.index[0]) for part in parts))
        assert torch.equal(torch.cat([part.x for part in parts]).sort(0).values, batch.x.sort(0).values)
        assert all(len(part.index.unique()) == 1 and part.step == 3 for part in parts)
    assert len(orders) == 6


def test_only_parameters_go_back_and_counters_stay_whole() -> None:
    group = np.array([0, 0, 1, 1, 1, 0])
    net = Net(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)), nn.Linear(4, 2)).double()
    inner = Net(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)), nn.Linear(4, 2)).double()
    inner.load_state_dict(net.state_dict())
    for other, meta_lr in ((net, 0.25), (inner, 1.0)):
        MetaStep(domain=group, meta_lr=meta_lr, warmup=0)(
            prepared_of(other, momentum=0.9), FreshRisk(warmup=0), batch_of(group), {}, np.random.default_rng(0)
        )
    norm, reached = net.body[1], inner.body[1]
    assert torch.equal(norm.running_mean, reached.running_mean)
    assert norm.num_batches_tracked == 2
    assert norm.num_batches_tracked.dtype == torch.int64
    assert not torch.equal(norm.weight, reached.weight)


def test_the_optimiser_starts_anew_after_the_warm_up() -> None:
    assert FreshRisk(warmup=6).reset_at == (6,)
