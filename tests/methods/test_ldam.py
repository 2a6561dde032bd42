"""LDAM: what it is without margins and weights, its margins, and when its weights begin."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from umix.data.batch import Batch
from umix.data.benchmarks.four_moons import FourMoons
from umix.data.task import Task
from umix.methods.erm import ERM
from umix.methods.ldam import LDAM
from umix.methods.parts.offset_risk import OffsetRisk
from umix.models.net import Net
from umix.training.context import Context
from umix.training.objective import Objective
from umix.training.train_result import TrainResult

Make = Callable[..., Context]
PLAIN = {"max_margin": 0.0, "scale": 1.0, "beta": 0.0}


@pytest.fixture(scope="module")
def unequal() -> Task:
    """Classes of 90 and 15 examples: batches of 32 make four steps."""
    return FourMoons(sizes=(45, 8, 45, 7), eval_size=20).load()


def parameters(net: Net) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in net.parameters()])


def test_without_margins_and_weights_it_is_erm_bit_by_bit(context: Make, unequal: Task) -> None:
    erm = parameters(ERM().train(context(task=unequal)).net)
    never = LDAM(max_margin=0.0, scale=1.0, reweight_from=1.0).train(context(task=unequal))
    assert torch.equal(parameters(never.net), erm)
    alike = LDAM(**PLAIN).train(context(task=unequal))
    torch.testing.assert_close(parameters(alike.net), erm)


def test_without_margins_it_is_cross_entropy_of_scaled_logits(context: Make, unequal: Task) -> None:
    found = LDAM(max_margin=0.0, scale=3.0, beta=0.0).train(context(task=unequal))
    scaled = context(task=unequal).fit(OffsetRisk(offset=torch.zeros(2), scale=3.0))
    torch.testing.assert_close(parameters(found.net), parameters(scaled.net))


def objective_of(method: LDAM, run: Context, monkeypatch: pytest.MonkeyPatch) -> Objective:
    found: list[Objective] = []
    fit = Context.fit

    def spy(self: Context, objective: Objective) -> TrainResult:
        found.append(objective)
        return fit(self, objective)

    monkeypatch.setattr(Context, "fit", spy)
    method.train(run)
    return found[0]


def test_the_risk_is_that_of_numpy_before_and_after_the_weights_begin(
    context: Make, unequal: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = context(task=unequal, fit={"epochs": 5})
    net, train = run.fresh_net().double(), unequal.splits["train"]
    objective = objective_of(LDAM(max_margin=0.7, scale=2.0, beta=0.99, reweight_from=0.6), run, monkeypatch)
    y, sizes = train.y.numpy(), np.array([90.0, 15.0])
    z = net(train.x.double()).detach().numpy()
    z[np.arange(len(y)), y] -= (0.7 * (15 / sizes) ** 0.25)[y]
    losses = np.log(np.exp(2 * z).sum(1)) - 2 * z[np.arange(len(y)), y]
    effective = ((1 - 0.99) / (1 - 0.99**sizes))[y]
    for step, w in ((11, np.ones(len(y))), (12, effective / effective.mean())):  # 4 steps × 3 of 5 epochs
        batch = Batch(train.x.double(), train.y, torch.arange(len(train)), step)
        risk, _ = objective.risk(net, batch, {}, np.random.default_rng(0))
        assert risk.item() == pytest.approx((w * losses).mean() / 2, rel=1e-6)


def test_margins_and_weights_help_the_rare_class(context: Make, unequal: Task) -> None:
    shares = []
    for method in (ERM(), LDAM(max_margin=0.8, scale=3.0, reweight_from=1.0), LDAM(max_margin=0.0, reweight_from=0.5)):
        run = context(task=unequal, fit={"epochs": 10})
        shares.append(run.logits(method.train(run).net, "test").argmax(1).float().mean().item())
    assert min(shares[1:]) > shares[0]


def test_a_class_without_training_rows_does_no_harm(context: Make, unequal: Task) -> None:
    net = LDAM().train(context(task=Task("three", unequal.splits, ("no", "yes", "never")))).net
    assert parameters(net).isfinite().all()
