"""BAM: what free logits do in stage 1, what the error set is, and how stage 2 goes on."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from umix.data.batch import Batch
from umix.data.samplers import Repeated
from umix.data.task import Task
from umix.methods.bam import BAM, AmplifiedRisk, free_logits
from umix.models.mlp import MLP
from umix.models.model import Model
from umix.training.context import Context
from umix.training.objective import MeanRisk
from umix.training.stage import ErmStage, SideStage, side_fit

Make = Callable[..., Context]


def parameters(net: Model) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in net.parameters()])


def test_the_risk_and_the_gradient_of_the_free_logits_are_those_of_numpy() -> None:
    rng, n, strength = np.random.default_rng(0), 12, 3.0
    x, y = torch.from_numpy(rng.standard_normal((n, 4))), torch.from_numpy(rng.integers(3, size=n))
    net, b = MLP(hidden=(5,)).build(x[0], 3).double(), rng.standard_normal((20, 3))
    net.companion = free_logits(20, 3).double()
    net.companion.head.weight.data = torch.from_numpy(b)
    index = torch.from_numpy(rng.permutation(20)[:n])
    risk, _ = AmplifiedRisk(strength).risk(net, Batch(x, y, index), {}, rng)
    risk.backward()
    z = net(x).detach().numpy() + strength * b[index.numpy()]
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    assert risk.item() == pytest.approx(-np.log(p[np.arange(n), y.numpy()]).mean(), rel=1e-12)
    expected = np.zeros((20, 3))
    expected[index.numpy()] = strength * (p - np.eye(3)[y.numpy()]) / n
    np.testing.assert_allclose(net.companion.head.weight.grad.numpy(), expected, atol=1e-15)


def test_free_logits_begin_at_zero() -> None:
    assert not free_logits(7, 3)(torch.arange(7)).any()


def test_stage_2_trains_the_net_of_stage_1_further_with_copies_of_what_it_gets_wrong(context: Make) -> None:
    run, other = context(), context()
    result = BAM(strength=2.0, amplified_epochs=2, upweight=7).train(run)
    stage = SideStage("amplified", 2, content="free logits strength=2.0", changes={"weight_decay": 0.0})
    companion = free_logits(len(other.splits["train"]), 2)
    net, _ = side_fit(other, stage, AmplifiedRisk(2.0), companion=companion)
    wrong = other.logits(net, "train").argmax(1) != other.splits["train"].y
    assert wrong.any()
    assert torch.equal(result.per_example["uncertainty"], wrong.float())
    assert companion.head.weight.any()
    net.companion = None
    settings = other.final_settings
    sampler = Repeated(torch.where(wrong, 7, 1))
    expected = other.final_fit(net, MeanRisk(), settings, other.new_history(settings.epochs), sampler)
    assert torch.equal(parameters(result.net), parameters(expected.net))


def test_without_strength_stage_1_is_erm(context: Make) -> None:
    run, other = context(), context()
    result = BAM(strength=0.0, amplified_epochs=3).train(run)
    erm = other.reference(ErmStage("amplified", 3))
    assert torch.equal(
        result.per_example["uncertainty"] == 1, other.logits(erm, "train").argmax(1) != other.splits["train"].y
    )


def test_free_logits_leave_more_minority_examples_wrong_than_erm(context: Make) -> None:
    """Whatever the net need not learn, because b does, stays wrong without b."""
    group = context().splits["train"].group
    errors = []
    for strength in (0.0, 30.0):
        run = context(fit={"epochs": 10})
        wrong = BAM(strength=strength, amplified_epochs=10).train(run).per_example["uncertainty"]
        errors.append(wrong[(group == 1) | (group == 2)].mean().item())
    assert errors[1] > errors[0]


def test_an_empty_error_set_is_said(context: Make, moons: Task) -> None:
    train = moons.splits["train"]
    easy = train.rows((train.group == 0).nonzero()[:, 0])
    task = Task("easy", {**moons.splits, "train": easy}, moons.classes)
    result = BAM(amplified_epochs=2).train(context(task=task))
    assert any("the error set is empty" in warning for warning in result.warnings)
