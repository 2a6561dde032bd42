"""CnC's recipe: a first net's predictions, balanced batches, contrast of features."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from umix.core.streams import torch_stream
from umix.data.batch import Batch
from umix.data.samplers import Balanced
from umix.data.task import Task
from umix.methods.cnc import CnC, ContrastiveRisk, contrastive_risk
from umix.models.mlp import MLP
from umix.models.net import Net
from umix.training.context import Context
from umix.training.objective import MeanRisk
from umix.training.stage import ErmStage

Make = Callable[..., Context]


def parameters(net: Net) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in net.parameters()])


def predictions(run: Context, epochs: int) -> torch.Tensor:
    return run.logits(run.reference(ErmStage("reference", epochs)), "train").argmax(1)


def test_weight_zero_is_erm_on_the_balanced_rows(context: Make) -> None:
    run, other = context(), context()
    result = CnC(weight=0.0, reference_epochs=2).train(run)
    y = run.task.splits["train"].y
    wrong = (predictions(other, 2) != y).long()
    assert torch.equal(result.per_example["environment"], wrong)
    expected = other.fit(MeanRisk(), sampler=Balanced(2 * y + wrong)).net
    torch.testing.assert_close(parameters(result.net), parameters(expected))


def test_the_risk_is_the_share_of_contrast_and_of_loss() -> None:
    with torch_stream(0, "test", "init"):
        net = MLP(hidden=(8,)).build(torch.zeros(4), 3)
    rng = np.random.default_rng(0)
    x, y = torch.from_numpy(rng.standard_normal((12, 4))).float(), torch.arange(12) % 3
    predicted = torch.from_numpy(rng.integers(0, 3, 40))
    index = torch.arange(20, 32)
    objective = ContrastiveRisk(predicted=predicted, weight=0.6, temperature=0.2)
    risk, _ = objective.risk(net, Batch(x, y, index), {}, rng)
    contrast = contrastive_risk(net.features(x), y, predicted[20:32], temperature=0.2)
    loss = torch.nn.functional.cross_entropy(net(x), y)
    assert contrast.item() > 0
    assert risk.item() == pytest.approx(0.6 * contrast.item() + 0.4 * loss.item(), rel=1e-6)


def test_contrast_draws_the_features_of_a_class_together(context: Make) -> None:
    found = {}
    for weight in (0.0, 0.75):
        run = context(fit={"epochs": 10})
        net = CnC(weight=weight).train(run).net
        train = run.task.splits["train"]
        found[weight] = contrastive_risk(
            net.features(train.x), train.y, predictions(context(), 5), temperature=0.1
        ).item()
    assert found[0.75] < 0.8 * found[0.0]


def test_without_mistakes_of_the_reference_it_is_class_balanced_erm_and_says_so(context: Make, moons: Task) -> None:
    train = moons.splits["train"]
    easy = replace(train, x=4 * torch.nn.functional.one_hot(train.y, 2).float())
    task = Task("easy", {**moons.splits, "train": easy}, moons.classes)
    result = CnC(reference_epochs=3).train(context(task=task))
    assert any("no features can be contrasted" in warning for warning in result.warnings)
    expected = context(task=task).fit(MeanRisk(), sampler=Balanced(easy.y)).net
    assert torch.equal(parameters(result.net), parameters(expected))


RNG = np.random.default_rng(0)


def by_loop(z: np.ndarray, y: np.ndarray, s: np.ndarray, temperature: float) -> float:
    losses = []
    for i in range(len(y)):
        if s[i] == y[i]:
            positives = [j for j in range(len(y)) if y[j] == y[i] and s[j] != y[j]]
            negatives = [j for j in range(len(y)) if y[j] != y[i] and s[j] == s[i]]
        else:
            positives = [j for j in range(len(y)) if y[j] == y[i] and s[j] == y[j]]
            negatives = [j for j in range(len(y)) if s[j] == y[j] == s[i]]
        if not positives:
            continue

        def e(j: int, i: int = i) -> float:
            cosine = z[i] @ z[j] / (np.linalg.norm(z[i]) * np.linalg.norm(z[j]))
            return math.exp(cosine / temperature)

        below = sum(e(j) for j in negatives) + sum(e(j) for j in positives)
        losses.append(-np.mean([math.log(e(j) / below) for j in positives]))
    return float(np.mean(losses)) if losses else 0.0


@pytest.mark.parametrize(("classes", "temperature"), [(2, 0.1), (2, 0.05), (4, 0.5)])
def test_it_is_the_formula_anchor_by_anchor(classes: int, temperature: float) -> None:
    z, y = RNG.standard_normal((30, 5)), RNG.integers(0, classes, 30)
    s = np.where(RNG.random(30) < 0.6, y, RNG.integers(0, classes, 30))
    found = contrastive_risk(*(torch.from_numpy(a) for a in (z, y, s)), temperature=temperature)
    assert found.item() == pytest.approx(by_loop(z, y, s, temperature), rel=1e-10)


def test_its_gradient_is_that_of_differences() -> None:
    z = torch.from_numpy(RNG.standard_normal((9, 4))).requires_grad_()
    y, s = torch.tensor([0, 0, 0, 1, 1, 1, 2, 2, 2]), torch.tensor([0, 1, 0, 1, 0, 2, 2, 2, 2])
    assert gradcheck(lambda features: contrastive_risk(features, y, s, temperature=0.3), z)


@pytest.mark.parametrize("predicted", [[0, 0, 1], [1, 1, 0]], ids=["all right", "all wrong"])
def test_without_positives_the_risk_and_its_gradient_are_zero(predicted: list[int]) -> None:
    z = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), requires_grad=True)
    risk = contrastive_risk(z, torch.tensor([0, 0, 1]), torch.tensor(predicted), temperature=0.1)
    risk.backward()
    assert risk.item() == 0
    assert z.grad.eq(0).all()


def test_features_of_length_zero_and_a_small_temperature_stay_finite() -> None:
    z = torch.zeros(6, 3, requires_grad=True)
    y, s = torch.tensor([0, 0, 0, 1, 1, 1]), torch.tensor([0, 1, 0, 1, 0, 1])
    risk = contrastive_risk(z, y, s, temperature=0.001)
    risk.backward()
    assert risk.isfinite()
    assert z.grad.isfinite().all()


def test_drawing_positives_together_lowers_it() -> None:
    y, s = torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 1, 0])
    by_class, by_slice = (torch.nn.functional.one_hot(ids, 2).float() for ids in (y, s))
    near, far = (contrastive_risk(z, y, s, temperature=0.1) for z in (by_class, by_slice))
    assert near < 1e-3 < 5 < far


def test_half_precision_is_compared_in_single_under_autocast_too() -> None:
    z = torch.from_numpy(RNG.standard_normal((30, 5))).bfloat16()
    y = torch.arange(30) % 2
    s = torch.where(torch.arange(30) % 5 > 1, y, 1 - y)
    expected = contrastive_risk(z.double(), y, s, temperature=0.05)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = contrastive_risk(z, y, s, temperature=0.05)
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)
