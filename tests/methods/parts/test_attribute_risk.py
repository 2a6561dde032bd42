"""The risk of nets that predict groups, against an independent reference."""

import numpy as np
import pytest
import torch

from umix.data.batch import Batch
from umix.methods.parts.attribute_nets import AttributeRisk
from umix.nets.mlp import MLP


def test_the_risk_is_that_of_labelled_rows_and_of_sure_pseudo_labels() -> None:
    rng, n = np.random.default_rng(0), 40
    x, y = torch.from_numpy(rng.normal(size=(n, 3))), torch.from_numpy(rng.integers(2, size=n))
    target = torch.from_numpy(np.where(np.arange(n) < 12, rng.integers(3, size=n), -1))
    labelled = torch.tensor([[3, 1, 2], [2, 2, 2]])
    objective = AttributeRisk(y=y, target=target, labelled=labelled, threshold=0.6, steps=2)
    net = MLP(hidden=()).build(torch.zeros(3), 3).double()
    with torch.no_grad():
        net.head.weight.copy_(torch.from_numpy(2 * rng.normal(size=(3, 3))))  # so that some predictions are sure
    state = {name: tensor.double() for name, tensor in objective.init(4).items()}
    logits = net(x).detach().numpy()
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    taken_anything = 0
    for step, rows in enumerate(np.array_split(rng.permutation(n), 2) * 2):
        index = torch.from_numpy(rows)
        risk, state = objective.risk(net, Batch(x[index], y[index], index, step), state, rng)
        limits = np.full((2, 3), np.inf)
        if step >= 2:
            free = np.arange(n) >= 12
            goal = 1 + int((p[free & (y.numpy() == 0), 1] >= 0.6).sum())
            for c in range(2):
                for a in range(3):
                    ordered = np.sort(p[free & (y.numpy() == c), a])[::-1]
                    k = goal - int(labelled[c, a])
                    if k > 0:
                        limits[c, a] = ordered[min(k, len(ordered)) - 1]
            limits[0, 1] = 0.6
        supervised = np.mean([-np.log(p[i, target[i]]) for i in rows if i < 12])
        others = [i for i in rows if i >= 12]
        sure = [i for i in others if p[i].max() >= limits[y[i], p[i].argmax()]]
        taken_anything += len(sure)
        expected = supervised + sum(-np.log(p[i].max()) for i in sure) / len(others)
        assert risk.item() == pytest.approx(expected, rel=1e-6)
    assert taken_anything > 0


def test_above_one_the_threshold_leaves_supervised_training() -> None:
    x, y = torch.randn(6, 3, generator=torch.Generator().manual_seed(0)), torch.zeros(6, dtype=torch.int64)
    net = MLP(hidden=()).build(torch.zeros(3), 2)
    target = torch.tensor([0, 1, -1, -1, -1, -1])
    objective = AttributeRisk(y=y, target=target, labelled=torch.tensor([[1, 1]]), threshold=1.5, steps=1)
    state, rng = objective.init(2), np.random.default_rng(0)
    for step in range(3):
        risk, state = objective.risk(net, Batch(x, y, torch.arange(6), step), state, rng)
    expected = torch.nn.functional.cross_entropy(net(x[:2]), target[:2])
    assert risk.item() == pytest.approx(expected.item(), rel=1e-6)


@pytest.mark.parametrize("rows", [[0], [4], []], ids=["labelled", "not labelled", "empty"])
def test_the_risk_of_a_batch_with_one_kind_of_rows_is_finite(rows: list[int]) -> None:
    y = torch.zeros(6, dtype=torch.int64)
    objective = AttributeRisk(
        y=y, target=torch.tensor([0, 1, -1, -1, -1, -1]), labelled=torch.tensor([[1, 1]]), threshold=0.5, steps=1
    )
    net, index = MLP(hidden=()).build(torch.zeros(3), 2), torch.tensor(rows, dtype=torch.int64)
    batch = Batch(torch.zeros(len(rows), 3), y[index], index, 1)
    risk, _ = objective.risk(net, batch, objective.init(2), np.random.default_rng(0))
    risk.backward()
    assert torch.isfinite(risk)
