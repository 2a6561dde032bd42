"""The objective of UMIX's second stage."""

import numpy as np
import pytest
import torch

from umix.core.losses import cross_entropy
from umix.core.mixing import draw_lambda, mix, mixed_loss
from umix.core.streams import torch_stream
from umix.data.batch import Batch
from umix.models.cnn import CNN
from umix.models.mlp import MLP, Linear
from umix.models.net import Net
from umix.training.mixup_risk import MIXERS, MixupRisk


def batch_of(n: int = 12) -> Batch:
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.standard_normal((n, 2, 8, 8))).float()
    return Batch(x, torch.from_numpy(rng.integers(2, size=n)), torch.arange(n))


def net_of(batch: Batch) -> Net:
    with torch_stream(0, "test", "init"):
        return MLP(hidden=(8,)).build(batch.x[0], 2)


def test_sigma_zero_is_the_weighted_loss_of_the_batch() -> None:
    batch, w = batch_of(), torch.rand(12) + 0.1
    net = net_of(batch)
    risk, _ = MixupRisk(weights=w, sigma=0, alpha=0.5).risk(net, batch, {}, np.random.default_rng(0))
    assert torch.allclose(risk, (w * cross_entropy(net(batch.x), batch.y)).mean())


@pytest.mark.parametrize("mixing", ["input", "features"])
def test_sigma_one_is_the_mixed_loss_by_hand(mixing: str) -> None:
    batch, w = batch_of(), torch.rand(12) + 0.1
    net = net_of(batch)
    risk, _ = MixupRisk(weights=w, sigma=1, alpha=0.5, mixing=mixing).risk(net, batch, {}, np.random.default_rng(7))
    rng = np.random.default_rng(7)
    rng.random()
    lam, pair = rng.beta(0.5, 0.5), torch.from_numpy(rng.permutation(12))
    z = batch.x if mixing == "input" else net.features(batch.x)
    mixed = lam * z + (1 - lam) * z[pair]
    logits = net(mixed) if mixing == "input" else net.head(mixed)
    assert torch.allclose(risk, mixed_loss(logits, batch.y, w, pair, lam).mean())


@pytest.mark.parametrize("mixing", list(MIXERS))
@pytest.mark.parametrize("per_example", [False, True])
def test_every_mixing_has_finite_gradients_also_for_one_example(mixing: str, per_example: bool) -> None:
    for n in (1, 12):
        batch = batch_of(n)
        net = CNN(channels=(4,)).build(batch.x[0], 2)
        objective = MixupRisk(weights=torch.ones(n), sigma=0.7, alpha=0.5, mixing=mixing, per_example=per_example)
        for seed in range(5):
            net.zero_grad()
            objective.risk(net, batch, {}, np.random.default_rng(seed))[0].backward()
            assert all(torch.isfinite(parameter.grad).all() for parameter in net.parameters())


def test_per_example_draws_mix_about_the_share_sigma_of_examples() -> None:
    lam = draw_lambda(4000, sigma=0.3, alpha=0.5, per_example=True, rng=np.random.default_rng(0))
    assert (lam < 1).mean() == pytest.approx(0.3, abs=0.03)


def test_weight_k_is_k_copies_of_the_row_in_the_risk() -> None:
    batch = batch_of(5)
    net, copies = net_of(batch), torch.tensor([1, 3, 2, 1, 1])
    w = copies.float()
    rng = np.random.default_rng(0)
    weighted, _ = MixupRisk(weights=w, sigma=0, alpha=1).risk(net, batch, {}, rng)
    rows = torch.repeat_interleave(torch.arange(5), copies)
    repeated = Batch(batch.x[rows], batch.y[rows], torch.arange(len(rows)))
    plain, _ = MixupRisk(weights=torch.ones(len(rows)), sigma=0, alpha=1).risk(net, repeated, {}, rng)
    assert torch.allclose(weighted * 5, plain * len(rows))


@pytest.mark.parametrize("mixing", ["input", "features"])
@pytest.mark.parametrize("per_example", [False, True])
def test_mixing_the_logits_of_a_linear_net_is_mixing_its_inputs(mixing: str, per_example: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(20, 7, generator=generator, dtype=torch.float64)
    pair, lam = torch.randperm(20, generator=generator), 0.3
    given = torch.rand(20, generator=generator, dtype=torch.float64) if per_example else lam
    with torch_stream(0, "fit", "init"):
        net = Linear().build(x[0], 3).double()
    logits, _ = MIXERS[mixing](net, x, pair, given, np.random.default_rng(0))
    by_hand = net(mix(x, pair, given))
    torch.testing.assert_close(logits, by_hand, rtol=0, atol=1e-14)
    gradients = [torch.autograd.grad(z.square().sum(), net.head.weight)[0] for z in (logits, by_hand)]
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("sigma", [0.0, 1.0])
@pytest.mark.parametrize("weight", [None, torch.arange(12.0)], ids=["no weights", "the batch's weights"])
def test_without_weights_all_examples_weigh_the_same(sigma: float, weight: torch.Tensor | None) -> None:
    rng = np.random.default_rng(0)
    x, y = torch.from_numpy(rng.standard_normal((12, 3))).float(), torch.from_numpy(rng.integers(2, size=12))
    batch, net = Batch(x, y, torch.arange(12), weight=weight), MLP(hidden=(4,)).build(x[0], 2)
    risks = [
        MixupRisk(weights=weights, sigma=sigma, alpha=0.5).risk(net, batch, {}, np.random.default_rng(1))[0]
        for weights in (None, torch.ones(12))
    ]
    torch.testing.assert_close(*risks)
    assert MixupRisk(sigma=sigma, alpha=0.5).example_weights is not None
