"""CORAL's risk, and what it is without its penalty."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from umix.core.environments import mean_coral
from umix.data.batch import Batch
from umix.data.samplers import Balanced
from umix.methods.coral import CORAL, AlikeFeaturesRisk
from umix.methods.parts.domains import Domains, DomainsAre
from umix.models.mlp import MLP
from umix.training.context import Context
from umix.training.objective import MeanRisk

Make = Callable[..., Context]
RNG = np.random.default_rng(0)


def covariance(rows: np.ndarray) -> np.ndarray:
    return np.cov(rows.T) if len(rows) > 1 else np.zeros((rows.shape[1], rows.shape[1]))


@pytest.mark.parametrize("group", [[0, 1, 2, 3] * 5, [3, 0, 0, 3, 0, 1, 3], [2] * 4], ids=["all", "some", "one domain"])
@pytest.mark.parametrize("gamma", [0.0, 0.1, 10.0])
def test_the_risk_is_that_of_numpy(group: list[int], gamma: float) -> None:
    rng, n, ids = np.random.default_rng(1), len(group), np.array(group)
    x, y = torch.from_numpy(rng.standard_normal((n, 5))), torch.from_numpy(rng.integers(3, size=n))
    net = MLP(hidden=(6,)).build(x[0], 3).double()
    objective = AlikeFeaturesRisk(distance=mean_coral, domains=Domains(torch.tensor(group), 5), gamma=gamma)
    risk, _ = objective.risk(net, Batch(x, y, torch.arange(n)), {}, RNG)
    z, features = net(x).detach().numpy(), net.features(x).detach().numpy()
    parts = [features[ids == g] for g in np.unique(ids)]
    pairs = [
        ((a.mean(0) - b.mean(0)) ** 2).mean() + ((covariance(a) - covariance(b)) ** 2).mean()
        for i, a in enumerate(parts)
        for b in parts[:i]
    ]
    loss = np.mean(np.log(np.exp(z).sum(1)) - z[np.arange(n), y.numpy()])
    assert risk.item() == pytest.approx(loss + gamma * (np.mean(pairs) if pairs else 0), rel=1e-10)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("domains", ["attribute", "group"])
def test_without_penalty_it_is_erm_on_batches_that_hold_the_domains_in_equal_parts(
    context: Make, optimizer: str, domains: DomainsAre
) -> None:
    run = context(groups=True, fit={"optimizer": optimizer})
    coral = CORAL(gamma=0.0, domains=domains).train(run).net
    erm, train = context(groups=True, fit={"optimizer": optimizer}), run.splits["train"]
    assert train.attribute is not None
    expected = erm.fit(MeanRisk(), sampler=Balanced(train.attribute if domains == "attribute" else train.group)).net
    assert all(torch.equal(a, b) for a, b in zip(coral.parameters(), expected.parameters(), strict=True))


def test_the_penalty_brings_the_means_of_the_domains_closer(context: Make) -> None:
    spreads = []
    for gamma in (0.0, 10.0):
        run = context(groups=True, fit={"epochs": 10})
        net = CORAL(gamma=gamma).train(run).net
        features, domain = run.features(net, "train"), run.splits["train"].attribute
        spreads.append(torch.stack([features[domain == d].mean(0) for d in range(2)]).var(0).mean().item())
    assert spreads[1] < spreads[0] / 2
