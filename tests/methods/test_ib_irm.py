"""IB-IRM's risk, its two annealings and what it is without its bottleneck."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from umix.core.penalties import irm
from umix.data.batch import Batch
from umix.data.samplers import Balanced
from umix.methods.ib_irm import IBIRM, BottleneckRisk
from umix.methods.irm import IRM
from umix.methods.parts.domains import Domains
from umix.models.mlp import MLP
from umix.training.context import Context
from umix.training.engine import Prepared
from umix.training.loop import descend
from umix.training.objective import Objective, State

Make = Callable[..., Context]
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("group", [[0, 1, 2, 3] * 5, [3, 0, 0, 3, 0, 1, 3], [2]], ids=["all", "some", "one example"])
@pytest.mark.parametrize(("step", "weight", "narrow"), [(4, 1.0, 0.0), (5, 1.0, 50.0), (7, 20.0, 50.0)])
def test_the_risk_is_that_of_numpy_at_every_stage(group: list[int], step: int, weight: float, narrow: float) -> None:
    rng, n, ids = np.random.default_rng(1), len(group), np.array(group)
    x, y = torch.from_numpy(rng.standard_normal((n, 5))), torch.from_numpy(rng.integers(3, size=n))
    net = MLP(hidden=(6,)).build(x[0], 3).double()
    domains = Domains(torch.tensor(group), 5)
    objective = BottleneckRisk(domains=domains, penalty=20.0, anneal=7, bottleneck=50.0, bottleneck_anneal=5)
    risk, _ = objective.risk(net, Batch(x, y, torch.arange(n), step), {}, RNG)
    features, logits = net.features(x).detach(), net(x).detach()
    losses = torch.nn.functional.cross_entropy(logits, y, reduction="none").numpy()
    parts = [np.flatnonzero(ids == g) for g in np.unique(ids)]
    means = np.mean([losses[rows].mean() for rows in parts])
    penalties = np.mean([irm(logits[rows], y[rows]).item() for rows in parts])  # by NumPy in test_irm
    variances = [features[rows].numpy().var(0, ddof=1).mean() if len(rows) > 1 else 0.0 for rows in parts]
    expected = means + weight * penalties + narrow * np.mean(variances)
    assert risk.item() == pytest.approx(expected / max(weight, narrow, 1), rel=1e-10)


@pytest.mark.parametrize("bottleneck_anneal", [0, 3, 500])
def test_without_bottleneck_it_is_irm(context: Make, bottleneck_anneal: int) -> None:
    narrow = IBIRM(bottleneck=0.0, penalty=5.0, anneal=7, bottleneck_anneal=bottleneck_anneal)
    plain = IRM(penalty=5.0, anneal=7)
    nets = [method.train(context(groups=True)).net for method in (narrow, plain)]
    assert all(torch.equal(a, b) for a, b in zip(nets[0].parameters(), nets[1].parameters(), strict=True))


def test_the_bottleneck_makes_features_vary_less_within_groups(context: Make) -> None:
    spreads = []
    for bottleneck in (0.0, 10.0):
        run = context(groups=True, fit={"epochs": 10})
        net = IBIRM(penalty=1.0, bottleneck=bottleneck, bottleneck_anneal=10, domains="group").train(run).net
        features, group = run.features(net, "train"), run.splits["train"].group
        spreads.append(np.mean([features[group == g].var(0).mean().item() for g in range(4)]))
    assert spreads[1] < spreads[0] / 2


@pytest.mark.parametrize(("bottleneck", "expected"), [(10.0, [0, 7, 11]), (0.0, [0, 7])])
def test_the_optimiser_forgets_wherever_a_weight_changes(context: Make, bottleneck: float, expected: list[int]) -> None:
    steps: list[int] = []

    def spy(
        p: Prepared, o: Objective, b: Batch, s: State, rng: np.random.Generator, clip: float | None = None
    ) -> State:
        if not p.optimizer.state:
            steps.append(b.step)
        return descend(p, o, b, s, rng, clip)

    run = context(groups=True)
    domains = Domains(run.splits["train"].group, 4)
    objective = BottleneckRisk(domains=domains, penalty=5.0, anneal=7, bottleneck=bottleneck, bottleneck_anneal=11)
    run.fit(objective, sampler=Balanced(run.splits["train"].group), step=spy)
    assert steps == expected
