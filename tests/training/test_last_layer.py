"""The last layer trained by itself is the last layer of the whole net."""

from pathlib import Path

import pytest
import torch
from torch import nn

from umix.data.benchmarks.four_moons import FourMoons
from umix.data.samplers import FullBatchSampler
from umix.errors import UserError
from umix.models.mlp import MLP
from umix.models.net import Net
from umix.training.context import Context
from umix.training.fit_settings import FitSettings
from umix.training.last_layer import LastLayer, fit_last_layer, linear_head
from umix.training.objective import MeanRisk
from umix.training.stage import ErmStage

TASK = FourMoons(sizes=(60, 8, 8, 60), eval_size=30).load()
FIT = FitSettings(epochs=3, lr=0.05, batch_size=32)


def context(directory: Path | None = None) -> Context:
    return Context(TASK, MLP(hidden=(8,)), FIT, directory=directory, hold=directory is None)


def test_standardised_features_with_the_layer_as_it_is_give_the_logits_of_the_whole_net() -> None:
    run = context()
    net = run.reference(ErmStage("reference", 2))
    before = run.logits(net, "train")
    z = {name: run.features(net, name) for name in ("train", "val", "test")}
    layer = LastLayer.of(net, run.splits, z)
    torch.testing.assert_close(layer.net(layer.inputs["train"].x), before)
    assert layer.inputs["train"].x.std(0, correction=0).max() == pytest.approx(1)
    torch.testing.assert_close(layer.copied()(z["val"]), run.logits(net, "val"))


def test_only_the_last_layer_moves_and_its_counts_are_those_of_the_whole_net() -> None:
    run = context()
    net = run.reference(ErmStage("reference", 2))
    body, head = ([p.clone() for p in part.parameters()] for part in (net.body, linear_head(net)))
    result = fit_last_layer(run, net, run.splits["train"], MeanRisk(), settings=FIT)
    assert result.net is net
    assert all(torch.equal(a, b) for a, b in zip(body, net.body.parameters(), strict=True))
    assert not torch.equal(head[0], linear_head(net).weight)
    hits = (run.logits(net, "test").argmax(1) == TASK.splits["test"].y).sum()
    assert result.history.counts("test").all_hits[-1] == hits
    assert set(result.history.best.held[2]) == set(net.state_dict())  # the whole net is what is kept


def test_full_batch_steps_are_gradient_descent_on_standardised_features() -> None:
    run = context()
    net = run.reference(ErmStage("reference", 2))
    z, y = run.features(net, "train").double(), TASK.splits["train"].y
    x = (z - z.mean(0)) / z.std(0, correction=0).where(z.std(0, correction=0) > 0, 1.0)
    head = linear_head(net)
    w = (head.weight.detach().double() * z.std(0, correction=0)).requires_grad_()
    b = (head.weight.detach().double() @ z.mean(0) + head.bias.detach().double()).requires_grad_()
    for _ in range(4):
        risk = nn.functional.cross_entropy(x @ w.T + b, y)
        grads = torch.autograd.grad(risk, (w, b))
        with torch.no_grad():
            w -= 0.5 * grads[0]
            b -= 0.5 * grads[1]
    steps = FIT.updated({"epochs": 2, "batch_size": len(y), "lr": 0.5, "momentum": 0.0})
    fit_last_layer(run, net, run.splits["train"], MeanRisk(), settings=steps, sampler=FullBatchSampler(2))
    torch.testing.assert_close(run.logits(net, "train").double(), (x @ w.T + b).detach(), atol=1e-4, rtol=1e-4)


def test_a_new_last_layer_forgets_the_old_one() -> None:
    heads = []
    for scale in (1.0, 7.0):
        run = context()
        net = run.reference(ErmStage("reference", 2))
        with torch.no_grad():
            linear_head(net).weight.mul_(scale)
        fit_last_layer(run, net, run.splits["train"], MeanRisk(), settings=FIT, new=True)
        heads.append(linear_head(net).weight.clone())
    assert torch.equal(*heads)


def test_a_last_layer_that_is_not_linear_is_refused() -> None:
    with pytest.raises(UserError, match="must be linear with a bias, got Identity"):
        linear_head(Net(nn.Identity(), nn.Identity()))
