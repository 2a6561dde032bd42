"""LfF against a float64 reference, and what its parts are."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from umix.bench.runs.execute import execute
from umix.bench.runs.load_net import load_net
from umix.bench.spec.run_spec import RunSpec
from umix.core.losses import cross_entropy, generalized_cross_entropy
from umix.core.streams import torch_stream
from umix.core.weights import relative_difficulty
from umix.data.batch import Batch
from umix.methods.lff import FailureRisk, LfF
from umix.models.mlp import MLP
from umix.models.net import Net
from umix.training.context import Context
from umix.training.objective import State

Make = Callable[..., Context]
RNG = np.random.default_rng(0)
N, CLASSES = 20, 3
Y = torch.tensor([i % CLASSES for i in range(N)])


def nets() -> Net:
    with torch_stream(0, "test", "init"):
        net = MLP(hidden=(8,)).build(torch.zeros(4), CLASSES)
        net.companion = MLP(hidden=(8,)).build(torch.zeros(4), CLASSES)
    return net.double()


def batch_of(index: list[int], seed: int) -> Batch:
    x = 3 * np.random.default_rng(seed).standard_normal((len(index), 4))
    return Batch(torch.from_numpy(x), Y[index], torch.tensor(index))


def start(objective: FailureRisk) -> State:
    return {name: tensor.double() for name, tensor in objective.init(0).items()}


@dataclass
class Reference:
    """The risk of one batch after another, example by example."""

    q: float
    smoothing: float
    memory: list[dict[int, float]] = field(default_factory=lambda: [{}, {}])

    def weight(self, i: int, losses: tuple[float, float]) -> float:
        biased, debiased = (
            memory[i] / max(value for j, value in memory.items() if Y[j] == Y[i]) for memory in self.memory
        )
        return biased / (biased + debiased)

    def risk(self, net: Net, batch: Batch) -> float:
        p = [torch.softmax(one(batch.x), 1).detach().numpy() for one in (net.companion, net)]
        index, y = batch.index.tolist(), batch.y.tolist()
        losses = [tuple(-np.log(p[k][row, y[row]]) for k in (0, 1)) for row in range(len(y))]
        for i, both in zip(index, losses, strict=True):
            for memory, loss in zip(self.memory, both, strict=True):
                memory[i] = self.smoothing * memory[i] + (1 - self.smoothing) * loss if i in memory else loss
        total = 0.0
        for row, i in enumerate(index):
            total += (1 - p[0][row, y[row]] ** self.q) / self.q + self.weight(i, losses[row]) * losses[row][1]
        return total / len(index)


@pytest.mark.parametrize(("q", "smoothing"), [(0.7, 0.7), (1.0, 0.0), (0.2, 0.95)])
def test_the_risk_of_batch_after_batch_is_the_formula(q: float, smoothing: float) -> None:
    net, reference = nets(), Reference(q, smoothing)
    objective = FailureRisk(y=Y, n_classes=CLASSES, q=q, smoothing=smoothing)
    state = start(objective)
    for seed, index in enumerate([[0, 1, 2, 3, 9], [4, 5, 6, 7, 8], [0, 9, 5, 12, 3], [3], [19, 0, 1]]):
        batch = batch_of(index, seed)
        risk, state = objective.risk(net, batch, state, RNG)
        assert risk.item() == pytest.approx(reference.risk(net, batch), rel=1e-12)
    for row, memory in zip(state["losses"], reference.memory, strict=True):
        expected = [memory.get(i, -1.0) for i in range(N)]
        np.testing.assert_allclose(row, expected, rtol=1e-12)


def test_the_biased_net_descends_gce_and_the_debiased_one_its_weighted_loss() -> None:
    net, batch = nets(), batch_of(list(range(10)), 0)
    objective = FailureRisk(y=Y, n_classes=CLASSES, q=0.7, smoothing=0.7)
    risk, state = objective.risk(net, batch, start(objective), RNG)
    risk.backward()
    gce = generalized_cross_entropy(net.companion(batch.x), batch.y, q=0.7).mean()
    for parameter, expected in zip(net.companion.parameters(), gradients(gce, net.companion), strict=True):
        torch.testing.assert_close(parameter.grad, expected)
    biased, debiased = state["losses"][:, :10]
    for c in range(CLASSES):
        biased[batch.y == c] /= biased[batch.y == c].max()
        debiased[batch.y == c] /= debiased[batch.y == c].max()
    weighted = (relative_difficulty(biased, debiased) * cross_entropy(net(batch.x), batch.y)).mean()
    for own, expected in zip([*net.body.parameters(), *net.head.parameters()], gradients(weighted, net), strict=True):
        torch.testing.assert_close(own.grad, expected)


def gradients(risk: Tensor, net: Net) -> tuple[Tensor, ...]:
    return torch.autograd.grad(risk, [*net.body.parameters(), *net.head.parameters()])


def test_losses_of_zero_weigh_one_half_and_stay_finite() -> None:
    net, batch = nets(), batch_of([0, 3, 6], 0)  # all of class 0
    for one in (net, net.companion):
        torch.nn.init.zeros_(one.head.weight)
        one.head.bias.data = torch.tensor([1e4, 0.0, 0.0], dtype=torch.float64)
    objective = FailureRisk(y=Y, n_classes=CLASSES, q=0.7, smoothing=0.7)
    risk, state = objective.risk(net, batch, start(objective), RNG)
    risk.backward()
    assert risk.item() == 0
    assert state["losses"][:, [0, 3, 6]].eq(0).all()
    assert all(parameter.grad.isfinite().all() for parameter in net.parameters())
    biased, debiased = state["losses"][:, [0, 3, 6]] / objective._largest(state["losses"])[:, batch.y]
    assert relative_difficulty(biased, debiased).eq(0.5).all()


def test_the_biased_net_fails_on_the_minority_and_the_debiased_one_less(context: Make) -> None:
    run = context(fit={"epochs": 20, "lr": 0.1})
    net = LfF().train(run).net
    train = run.task.splits["train"]
    minority = (train.group == 1) | (train.group == 2)
    wrong = {name: (one(train.x).argmax(1) != train.y)[minority].float().mean() for name, one in pair(net).items()}
    assert wrong["debiased"] < wrong["biased"]


def pair(net: Net) -> dict[str, Net]:
    assert net.companion is not None
    return {"debiased": net.eval(), "biased": net.companion.eval()}


def test_the_saved_net_of_a_run_is_the_debiased_one_alone(tmp_path: Path) -> None:
    settings = {"epochs": 2, "hidden": [8], "sizes": [40, 8, 8, 40], "eval_size": 10}
    record = execute(RunSpec(task="four_moons", method="lff", settings=settings), out=tmp_path)
    assert load_net(record, select="last").companion is None


@pytest.mark.system
def test_it_trains_in_mixed_precision(context: Make) -> None:
    net = LfF().train(context(fit={"precision": "bf16-mixed", "epochs": 2})).net
    assert all(parameter.isfinite().all() for parameter in net.parameters())
