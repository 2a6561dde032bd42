"""DORO: without outliers it is DRO, and outliers have no say."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from umix.data.task import Task
from umix.methods.doro import Chi2DORO, CVaRDORO
from umix.methods.dro import Chi2DRO, CVaRDRO
from umix.models.mlp import MLP
from umix.models.net import Net
from umix.training.context import Context

Make = Callable[..., Context]
PAIRS = pytest.mark.parametrize(("doro", "dro"), [(CVaRDORO, CVaRDRO), (Chi2DORO, Chi2DRO)], ids=lambda kind: kind.name)


def same(first: Net, second: Net) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


@PAIRS
@pytest.mark.parametrize("alpha", [0.2, 0.7])
def test_epsilon_zero_is_dro(context: Make, doro: type[CVaRDORO], dro: type[CVaRDRO], alpha: float) -> None:
    assert same(doro(alpha=alpha, epsilon=0).train(context()).net, dro(alpha=alpha).train(context()).net)


@PAIRS
def test_an_outlier_leads_dro_astray_and_not_doro(
    context: Make, moons: Task, doro: type[CVaRDORO], dro: type[CVaRDRO]
) -> None:
    train = moons.splits["train"]
    x = train.x.clone()
    x[0] = x[-1] = 1e4  # one place, both labels: one of the two has the largest loss by far, and so it has a gradient
    spoilt = Task(moons.name, {**moons.splits, "train": replace(train, x=x)}, moons.classes)
    setting = {"task": spoilt, "net": MLP(hidden=()), "fit": {"batch_size": len(train), "epochs": 1}}
    wild = dro().train(context(**setting)).net
    calm = doro(epsilon=1.5 / len(train)).train(context(**setting)).net
    largest = [max(float(p.detach().abs().max()) for p in net.parameters()) for net in (calm, wild)]
    assert largest[0] < 2
    assert largest[1] > 8
