"""IRM's risk, its annealing and what it is without its penalty."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from umix.core.environments import irm_risk
from umix.data.batch import Batch
from umix.data.samplers import Balanced
from umix.methods.irm import IRM, AnnealedRisk
from umix.methods.parts.domains import Domains
from umix.models.mlp import MLP
from umix.training.context import Context
from umix.training.engine import Prepared
from umix.training.loop import descend
from umix.training.objective import MeanRisk, Objective, State

Make = Callable[..., Context]
RNG = np.random.default_rng(0)


def batch_of(group: list[int], *, step: int = 0) -> Batch:
    rng, n = np.random.default_rng(1), len(group)
    x, y = torch.from_numpy(rng.standard_normal((n, 5))), torch.from_numpy(rng.integers(3, size=n))
    return Batch(x, y, torch.arange(n), step)


def by_numpy(logits: np.ndarray, y: np.ndarray, group: np.ndarray, weight: float) -> float:
    """(mean L + w·mean g₁g₂) / max(w, 1), one environment after the other, the scale's gradient by central differences."""

    def loss(z: np.ndarray, label: np.ndarray) -> float:
        return float(np.mean(np.log(np.exp(z).sum(1)) - z[np.arange(len(z)), label]))

    def scale_gradient(z: np.ndarray, label: np.ndarray) -> float:
        return (loss((1 + 1e-5) * z, label) - loss((1 - 1e-5) * z, label)) / 2e-5

    risks, penalties = [], []
    for g in np.unique(group):
        z, label = logits[group == g], y[group == g]
        risks.append(loss(z, label))
        two = len(z) > 1
        penalties.append(scale_gradient(z[::2], label[::2]) * scale_gradient(z[1::2], label[1::2]) if two else 0.0)
    return (np.mean(risks) + weight * np.mean(penalties)) / max(weight, 1)


@pytest.mark.parametrize("group", [[0, 1, 2, 3] * 5, [3, 0, 0, 3, 0, 1, 3], [2]], ids=["all", "some", "one example"])
@pytest.mark.parametrize(("step", "weight"), [(0, 1.0), (6, 1.0), (7, 20.0), (900, 20.0)])
def test_the_risk_is_that_of_numpy_before_and_after_the_anneal_step(group: list[int], step: int, weight: float) -> None:
    batch = batch_of(group, step=step)
    net = MLP(hidden=(6,)).build(batch.x[0], 3).double()
    domains = Domains(torch.tensor(group), 5)
    risk, _ = AnnealedRisk(risk_of=irm_risk, domains=domains, penalty=20.0, anneal=7).risk(net, batch, {}, RNG)
    expected = by_numpy(net(batch.x).detach().numpy(), batch.y.numpy(), np.array(group), weight)
    assert risk.item() == pytest.approx(expected, rel=1e-8)


def test_without_penalty_it_is_erm_on_balanced_batches(context: Make) -> None:
    run = context(groups=True)
    irm = IRM(penalty=0.0, anneal=0, domains="group").train(run).net
    erm = context(groups=True).fit(MeanRisk(), sampler=Balanced(run.splits["train"].group)).net
    for ours, theirs in zip(irm.parameters(), erm.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def forgotten(run: Context, objective: Objective) -> list[int]:
    """The steps that begin with an optimiser without momentum."""
    steps: list[int] = []

    def spy(
        p: Prepared, o: Objective, b: Batch, s: State, rng: np.random.Generator, clip: float | None = None
    ) -> State:
        if not p.optimizer.state:
            steps.append(b.step)
        return descend(p, o, b, s, rng, clip)

    run.fit(objective, sampler=Balanced(run.splits["train"].group), step=spy)
    return steps


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_the_optimiser_forgets_at_the_anneal_step_and_only_there(context: Make, optimizer: str) -> None:
    run = context(groups=True, fit={"optimizer": optimizer})
    domains = Domains(run.splits["train"].group, 4)
    assert forgotten(run, AnnealedRisk(risk_of=irm_risk, domains=domains, penalty=5.0, anneal=7)) == [0, 7]
