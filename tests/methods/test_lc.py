"""LC: its risk, its table, its pairs, and what it is with its parts switched off."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from umix.data.batch import Batch
from umix.methods.erm import ERM
from umix.methods.lc import LC, CorrectedRisk, minority_partners, mixing_range
from umix.models.mlp import MLP
from umix.training.context import Context

Make = Callable[..., Context]


def softmax(z: np.ndarray) -> np.ndarray:
    return np.exp(z) / np.exp(z).sum(1, keepdims=True)


@pytest.mark.parametrize("mixes", [False, True], ids=["alone", "mixed"])
def test_risk_and_table_are_those_of_numpy(mixes: bool) -> None:
    rng, n = np.random.default_rng(0), 16
    x, y = rng.standard_normal((n, 4)), rng.integers(3, size=n)
    net, other = (MLP(hidden=(6,)).build(torch.zeros(4), 3).double() for _ in range(2))
    net.companion = other
    objective = CorrectedRisk(
        n_classes=3, eta=0.7, temperature=0.5, smoothing=0.9, q=0.8, bias_weight=0.3, mix=mixes, ramp=10
    )
    batch = Batch(torch.from_numpy(x), torch.from_numpy(y), torch.arange(n), step=4)
    state = {"table": torch.full((3, 3), 1 / 9, dtype=torch.float64)}
    assert torch.equal(objective.init(0)["table"], state["table"].float())
    risk, after = objective.risk(net, batch, state, np.random.default_rng(5))

    b = other(batch.x).detach().numpy()
    table, p = np.full((3, 3), 1 / 9) * 0.9, softmax(b / 0.5)
    for i in range(n):
        table[:, y[i]] += 0.1 * p[i] / n
    share = (table / table.sum(1, keepdims=True))[b.argmax(1)]
    if mixes:
        draws = np.random.default_rng(5)
        t = np.exp(-5 * 0.6**2) / 2
        lam, numbers = draws.uniform(1 - 2 * t, 1 - t), draws.random((n, n), dtype=np.float32)
        pair = []
        for i in range(n):
            same = np.flatnonzero(y == y[i])
            minority = same[b.argmax(1)[same] != y[same]]
            fitting = minority if len(minority) else same
            pair.append(fitting[numbers[i, fitting].argmax()])
        x, share = (lam * one + (1 - lam) * one[pair] for one in (x, share))
    z = net(torch.from_numpy(x)).detach().numpy() + np.log(share**0.7 + 1e-4)
    corrected = -np.log(softmax(z)[np.arange(n), y]).mean()
    easy = ((1 - softmax(b)[np.arange(n), y] ** 0.8) / 0.8).mean()
    assert risk.item() == pytest.approx(corrected + 0.3 * easy, rel=1e-6)
    np.testing.assert_allclose(after["table"].numpy(), table, rtol=1e-10)


def test_without_correction_and_mixup_it_is_erm(context: Make) -> None:
    nets = [method.train(context()).net for method in (LC(eta=0.0, mix=False), ERM())]
    nets[0].companion = None
    for ours, theirs in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_partners_are_of_the_label_and_of_its_minority_if_there_is_one() -> None:
    rng = np.random.default_rng(0)
    y, predicted = torch.from_numpy(rng.integers(3, size=40)), torch.from_numpy(rng.integers(2, size=40))
    predicted[y == 0] = 0  # no minority
    pair = minority_partners(y, predicted, torch.from_numpy(rng.random((40, 40))))
    assert torch.equal(y[pair], y)
    assert (predicted[pair] != y[pair])[y > 0].all()
    assert len(pair[y == 0].unique()) > 1


def test_lambda_falls_from_almost_one_to_at_most_a_half() -> None:
    assert mixing_range(0, 100) == pytest.approx((1 - np.exp(-5), 1 - np.exp(-5) / 2))
    assert mixing_range(100, 100) == mixing_range(999, 100) == mixing_range(0, 0) == (0.0, 0.5)
