"""DomainMix's risk, its pairs and its settings."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from umix.data.batch import Batch
from umix.methods.domainmix import DomainCycle
from umix.models.mlp import MLP
from umix.training.mixup_risk import Mixing, MixupRisk

GROUPS = {"all": [0, 1, 2, 3] * 3, "some, of unequal size": [3, 0, 0, 3, 0, 1, 0], "one domain": [2, 2, 2]}
groups = pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS)


def batch_of(n: int, *shape: int) -> Batch:
    rng = np.random.default_rng(1)
    x, y = torch.from_numpy(rng.standard_normal((n, *shape))), torch.from_numpy(rng.integers(3, size=n))
    return Batch(x, y, torch.arange(n))


def objective_of(domain: np.ndarray, n_domains: int, alpha: float, mixing: Mixing = "input") -> MixupRisk:
    draw = DomainCycle(domain=domain, n_domains=n_domains, alpha=alpha)
    return MixupRisk(sigma=1.0, alpha=alpha, mixing=mixing, draw=draw)


def log_softmax(z: np.ndarray) -> np.ndarray:
    return z - np.log(np.exp(z).sum(-1, keepdims=True))


@groups
@pytest.mark.parametrize("mixing", ["input", "features"])
def test_the_risk_is_that_of_numpy(group: list[int], mixing: Mixing) -> None:
    batch, domain = batch_of(len(group), 5), np.array(group)
    net = MLP(hidden=(6,)).build(batch.x[0], 3).double()
    objective = objective_of(domain, 5, 0.2, mixing)
    risk, _ = objective.risk(net, batch, {}, np.random.default_rng(7))
    rng = np.random.default_rng(7)
    present = [d for d in rng.permutation(5) if d in group]
    lams = rng.beta(0.2, 0.2, 5).astype(np.float32).astype(np.float64)
    inner = (lambda x: x) if mixing == "input" else net.features
    outer = net if mixing == "input" else net.head
    expected, y = 0.0, batch.y.numpy()
    for i, d in enumerate(group):
        others = np.flatnonzero(domain == present[(present.index(d) + 1) % len(present)])
        j, lam = others[group[:i].count(d) % len(others)], lams[d]
        z = inner(batch.x).detach().numpy()
        log_p = log_softmax(outer(torch.from_numpy(lam * z[i] + (1 - lam) * z[j])).detach().numpy())
        expected -= (lam * log_p[y[i]] + (1 - lam) * log_p[y[j]]) / len(group)
    assert risk.item() == pytest.approx(expected, rel=1e-6)


def test_a_batch_of_one_domain_passes_unmixed() -> None:
    batch = batch_of(6, 5)
    net = MLP(hidden=(6,)).build(batch.x[0], 3).double()
    risk, _ = objective_of(np.full(6, 2), 4, 1.0).risk(net, batch, {}, np.random.default_rng(0))
    torch.testing.assert_close(risk, cross_entropy(net(batch.x), batch.y), rtol=1e-6, atol=0)
