"""V-REx's risk, its annealing and what it is without its penalty."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from umix.data.batch import Batch
from umix.data.samplers import Balanced
from umix.methods.irm import AnnealedRisk
from umix.methods.parts.domains import Domains
from umix.methods.vrex import VREx, risk_variance
from umix.models.mlp import MLP
from umix.training.context import Context
from umix.training.objective import MeanRisk

Make = Callable[..., Context]
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("group", [[0, 1, 2, 3] * 5, [3, 0, 0, 3, 0, 1, 3], [2]], ids=["all", "some", "one example"])
@pytest.mark.parametrize(("step", "weight"), [(0, 1.0), (6, 1.0), (7, 20.0), (900, 20.0)])
def test_the_risk_is_that_of_numpy_before_and_after_the_anneal_step(group: list[int], step: int, weight: float) -> None:
    rng, n = np.random.default_rng(1), len(group)
    x, y = rng.standard_normal((n, 5)), rng.integers(3, size=n)
    batch = Batch(torch.from_numpy(x), torch.from_numpy(y), torch.arange(n), step)
    net = MLP(hidden=(6,)).build(batch.x[0], 3).double()
    domains = Domains(torch.tensor(group), 5)
    risk, _ = AnnealedRisk(risk_of=risk_variance, domains=domains, penalty=20.0, anneal=7).risk(net, batch, {}, RNG)
    z = net(batch.x).detach().numpy()
    losses = np.log(np.exp(z).sum(1)) - z[np.arange(n), y]
    risks = [losses[np.array(group) == g].mean() for g in np.unique(group)]
    assert risk.item() == pytest.approx((np.mean(risks) + weight * np.var(risks)) / max(weight, 1), rel=1e-10)


def test_without_penalty_it_is_erm_on_balanced_batches(context: Make) -> None:
    run = context(groups=True)
    vrex = VREx(penalty=0.0, anneal=0, domains="group").train(run).net
    erm = context(groups=True).fit(MeanRisk(), sampler=Balanced(run.splits["train"].group)).net
    for ours, theirs in zip(vrex.parameters(), erm.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_a_large_penalty_makes_the_risks_of_the_groups_more_equal(context: Make) -> None:
    spreads = []
    for penalty in (0.0, 100.0):
        run = context(groups=True, fit={"epochs": 30, "lr": 0.1})
        net = VREx(penalty=penalty, anneal=0, domains="group").train(run).net
        train = run.splits["train"]
        losses = torch.nn.functional.cross_entropy(run.logits(net, "train"), train.y, reduction="none")
        spreads.append(torch.stack([losses[train.group == g].mean() for g in range(4)]).std().item())
    assert spreads[1] < spreads[0] / 2


def test_the_risk_changes_where_the_optimiser_is_reset() -> None:
    assert AnnealedRisk(
        risk_of=risk_variance, domains=Domains(torch.tensor([0]), 1), penalty=5.0, anneal=7
    ).reset_at == (7,)
