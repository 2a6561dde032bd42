"""MMD's risk, and what it is without its penalty."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from umix.core.environments import mean_mmd
from umix.data.batch import Batch
from umix.data.samplers import Balanced
from umix.methods.coral import AlikeFeaturesRisk
from umix.methods.mmd import MMD
from umix.methods.parts.domains import Domains
from umix.models.mlp import MLP, Linear
from umix.training.context import Context
from umix.training.objective import MeanRisk

Make = Callable[..., Context]
RNG = np.random.default_rng(0)


def kernel(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.mean(sum(np.exp(-(10.0**power) * cdist(a, b, "sqeuclidean")) for power in range(-3, 4))))


@pytest.mark.parametrize("group", [[0, 1, 2, 3] * 5, [3, 0, 0, 3, 0, 1, 3], [2] * 4], ids=["all", "some", "one domain"])
@pytest.mark.parametrize("gamma", [0.0, 0.1, 10.0])
def test_the_risk_is_that_of_numpy(group: list[int], gamma: float) -> None:
    rng, n, ids = np.random.default_rng(1), len(group), np.array(group)
    x, y = torch.from_numpy(rng.standard_normal((n, 5))), torch.from_numpy(rng.integers(3, size=n))
    net = MLP(hidden=(6,)).build(x[0], 3).double()
    objective = AlikeFeaturesRisk(distance=mean_mmd, domains=Domains(torch.tensor(group), 5), gamma=gamma)
    risk, _ = objective.risk(net, Batch(x, y, torch.arange(n)), {}, RNG)
    z, features = net(x).detach().numpy(), net.features(x).detach().numpy()
    parts = [features[ids == g] for g in np.unique(ids)]
    pairs = [kernel(a, a) + kernel(b, b) - 2 * kernel(a, b) for i, a in enumerate(parts) for b in parts[:i]]
    loss = np.mean(np.log(np.exp(z).sum(1)) - z[np.arange(n), y.numpy()])
    assert risk.item() == pytest.approx(loss + gamma * (np.mean(pairs) if pairs else 0), rel=1e-10)


@pytest.mark.parametrize("net", [MLP(hidden=(16,)), Linear()], ids=["mlp", "linear"])
def test_without_penalty_it_is_erm_on_balanced_batches_bit_by_bit(context: Make, net: MLP | Linear) -> None:
    run = context(groups=True, net=net)
    gamma = 1.0 if isinstance(net, Linear) else 0.0  # a linear layer has no features to change
    found = MMD(gamma=gamma, domains="group").train(run).net
    expected = context(groups=True, net=net).fit(MeanRisk(), sampler=Balanced(run.splits["train"].group)).net
    assert all(torch.equal(a, b) for a, b in zip(found.parameters(), expected.parameters(), strict=True))


def test_the_penalty_brings_the_features_of_the_domains_closer(context: Make) -> None:
    distances = []
    for gamma in (0.0, 30.0):
        run = context(groups=True, fit={"epochs": 10})
        net = MMD(gamma=gamma).train(run).net
        features, domain = run.features(net, "train").double().numpy(), run.task.splits["train"].attribute
        parts = [features[domain == d] for d in range(2)]
        pairs = [kernel(a, a) + kernel(b, b) - 2 * kernel(a, b) for i, a in enumerate(parts) for b in parts[:i]]
        distances.append(np.mean(pairs))
    assert distances[1] < 0.8 * distances[0]
