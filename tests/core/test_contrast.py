"""CnC's contrastive risk against a loop over anchors."""

import math

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck
from umix.core.contrast import contrastive_risk

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


def test_one_positive_without_negatives_costs_nothing() -> None:
    z = torch.from_numpy(RNG.standard_normal((2, 4)))
    assert contrastive_risk(z, torch.tensor([1, 1]), torch.tensor([1, 0]), temperature=0.1).item() == 0


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
