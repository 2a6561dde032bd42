"""DomainMix's risk, its pairs and its settings."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from umix.core.mixing import mixed_loss
from umix.core.pairing import partners_in_next
from umix.data.batch import Batch
from umix.errors import UserError
from umix.methods.domainmix import DomainMix, DomainMixup
from umix.methods.parts.mixup_risk import MIXERS
from umix.nets.cnn import CNN
from umix.nets.mlp import MLP
from umix.training.trainer import Trainer

Make = Callable[..., Trainer]

GROUPS = {"all": [0, 1, 2, 3] * 3, "some, of unequal size": [3, 0, 0, 3, 0, 1, 0], "one domain": [2, 2, 2]}
groups = pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS)


def batch_of(n: int, *shape: int) -> Batch:
    rng = np.random.default_rng(1)
    x, y = torch.from_numpy(rng.standard_normal((n, *shape))), torch.from_numpy(rng.integers(3, size=n))
    return Batch(x, y, torch.arange(n))


def log_softmax(z: np.ndarray) -> np.ndarray:
    return z - np.log(np.exp(z).sum(-1, keepdims=True))


@groups
@pytest.mark.parametrize("mixing", ["input", "features"])
def test_the_risk_is_that_of_numpy(group: list[int], mixing: str) -> None:
    batch, domain = batch_of(len(group), 5), np.array(group)
    net = MLP(hidden=(6,)).build(batch.x[0], 3).double()
    objective = DomainMixup(domain=domain, n_domains=5, alpha=0.2, mixing=mixing)
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


def test_mixed_labels_cost_the_mixed_loss() -> None:
    batch, domain = batch_of(12, 2, 8, 8), np.arange(12) % 4
    net = CNN(channels=(4,)).build(batch.x[0], 3).double()
    for mixing in MIXERS:
        objective = DomainMixup(domain=domain, n_domains=4, alpha=1.0, mixing=mixing)
        risk, _ = objective.risk(net, batch, {}, np.random.default_rng(3))
        rng = np.random.default_rng(3)
        pair = torch.from_numpy(partners_in_next(domain, rng.permutation(4)))
        lam = torch.from_numpy(rng.beta(1.0, 1.0, 4).astype(np.float32)[domain])
        logits, share = MIXERS[mixing](net, batch.x, pair, lam, rng)
        torch.testing.assert_close(risk, mixed_loss(logits, batch.y, torch.ones(12), pair, share).mean())


def test_a_batch_of_one_domain_passes_unmixed() -> None:
    batch = batch_of(6, 5)
    net = MLP(hidden=(6,)).build(batch.x[0], 3).double()
    objective = DomainMixup(domain=np.full(6, 2), n_domains=4, alpha=1.0)
    risk, _ = objective.risk(net, batch, {}, np.random.default_rng(0))
    torch.testing.assert_close(risk, cross_entropy(net(batch.x), batch.y), rtol=1e-6, atol=0)


@groups
@pytest.mark.parametrize("mixing", list(MIXERS))
def test_every_mixing_has_finite_gradients_and_leaves_the_batch_alone(group: list[int], mixing: str) -> None:
    batch = batch_of(len(group), 2, 8, 8)
    before = batch.x.clone()
    net = CNN(channels=(4,)).build(batch.x[0], 3).double()
    objective = DomainMixup(domain=np.array(group), n_domains=4, alpha=0.2, mixing=mixing)
    for seed in range(5):
        net.zero_grad()
        objective.risk(net, batch, {}, np.random.default_rng(seed))[0].backward()
        assert all(torch.isfinite(parameter.grad).all() for parameter in net.parameters())
    assert torch.equal(before, batch.x)


def test_cutmix_without_images_is_refused_before_training(trainer: Make, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"mixing=cutmix must be given images"):
        DomainMix(mixing="cutmix").train(trainer(groups=True, directory=tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_alpha_is_positive() -> None:
    with pytest.raises(UserError, match=r"domainmix\.alpha must be a number in \(0, inf\), got 0"):
        DomainMix(alpha=0)
