import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from umix.core.environments import environments, irm_risk, mean_bottleneck, mean_coral, mean_mmd, vrex_risk
from umix.core.losses import cross_entropy
from umix.core.penalties import bottleneck, coral, irm, mmd, vrex
from umix.core.risks import group_risks

_N_GROUPS = 5
#: Groups of a batch: all, some missing, one-example groups, one group only, one example.
_BATCHES = {
    "balanced": [0, 1, 2, 3, 4] * 6,
    "missing and small groups": [3, 1, 1, 3, 1, 4, 1, 3, 1, 1, 3],
    "one of each": [4, 0, 2],
    "one group": [2, 2, 2, 2],
    "one example": [1],
}
batches = pytest.mark.parametrize("group", _BATCHES.values(), ids=_BATCHES)


def _normal(*shape, seed=0, dtype=torch.float64):
    return torch.tensor(np.random.default_rng(seed).normal(size=shape), dtype=dtype).requires_grad_()


def _labels(n, classes=3):
    return torch.tensor(np.random.default_rng(1).integers(classes, size=n))


def _masks(group):
    return [torch.tensor(group) == g for g in sorted(set(group))]


def _among(group, like):
    return environments(torch.tensor(group), n_groups=_N_GROUPS, like=like)


def _agree(ours, theirs, x, atol=1e-13):
    torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-13)
    gradients = [
        torch.autograd.grad(value, x, allow_unused=True, materialize_grads=True)[0] for value in (ours, theirs)
    ]
    torch.testing.assert_close(*gradients, rtol=1e-10, atol=atol)


@batches
@pytest.mark.parametrize("penalty", [0.0, 7.0])
def test_irm_risk_is_the_mean_over_environments_of_risk_and_penalty_with_its_gradient(group, penalty):
    logits, y = _normal(len(group), 3), _labels(len(group))
    parts = [cross_entropy(logits[m], y[m]).mean() + penalty * irm(logits[m], y[m]) for m in _masks(group)]
    _agree(irm_risk(logits, y, _among(group, logits), penalty=penalty), torch.stack(parts).mean(), logits)


@batches
@pytest.mark.parametrize("penalty", [0.0, 7.0])
def test_vrex_risk_is_the_mean_and_the_variance_of_the_environments_risks_with_its_gradient(group, penalty):
    losses = _normal(len(group))
    risks = torch.stack([losses[m].mean() for m in _masks(group)])
    _agree(vrex_risk(losses, _among(group, losses), penalty=penalty), risks.mean() + penalty * vrex(risks), losses)


@batches
def test_mean_bottleneck_is_the_mean_over_environments_with_its_gradient(group):
    features = _normal(len(group), 4)
    expected = torch.stack([bottleneck(features[m]) for m in _masks(group)]).mean()
    _agree(mean_bottleneck(features, _among(group, features)), expected, features)


@batches
@pytest.mark.parametrize("width", [1, 4, 40])
def test_mean_coral_is_the_mean_over_pairs_of_environments_with_its_gradient(group, width):
    features = _normal(len(group), width)
    masks = _masks(group)
    pairs = [coral(features[a], features[b]) for i, a in enumerate(masks) for b in masks[:i]]
    expected = torch.stack(pairs).mean() if pairs else 0 * features.sum()
    _agree(mean_coral(features, _among(group, features)), expected, features)


@batches
@pytest.mark.parametrize("width", [1, 4, 40])
def test_mean_mmd_is_the_mean_over_pairs_of_environments_with_its_gradient(group, width):
    features = _normal(len(group), width)
    masks = _masks(group)
    pairs = [mmd(features[a], features[b]) for i, a in enumerate(masks) for b in masks[:i]]
    expected = torch.stack(pairs).mean() if pairs else 0 * features.sum()
    _agree(mean_mmd(features, _among(group, features)), expected, features, atol=1e-11)  # c = 1000 magnifies rounding


def test_mean_coral_is_what_numpy_says():
    features, group = _normal(30, 4), np.array(_BATCHES["balanced"])
    x = features.detach().numpy()
    parts = [x[group == g] for g in range(5)]
    pairs = [
        ((a.mean(0) - b.mean(0)) ** 2).mean() + ((np.cov(a.T) - np.cov(b.T)) ** 2).mean()
        for i, a in enumerate(parts)
        for b in parts[:i]
    ]
    np.testing.assert_allclose(
        mean_coral(features, _among(group.tolist(), features)).item(), np.mean(pairs), rtol=1e-12
    )


@batches
def test_the_weight_is_that_of_the_mean_risk_alone(group):
    logits, y = _normal(len(group), 3), _labels(len(group))
    losses, among = cross_entropy(logits, y), _among(group, logits)
    ids = torch.tensor(group)
    mean = group_risks(losses, ids, n_groups=_N_GROUPS).sum() / len(ids.unique())
    for risk in (
        lambda weight: irm_risk(logits, y, among, weight=weight, penalty=3.0),
        lambda weight: vrex_risk(losses, among, weight=weight, penalty=3.0),
    ):
        torch.testing.assert_close(risk(1.0) - risk(0.25), 0.75 * mean, rtol=1e-10, atol=1e-12)


@given(st.integers(0, 10**6), st.integers(1, 20))
@settings(max_examples=25)
def test_environments_may_be_renamed(seed, n):
    rng = np.random.default_rng(seed)
    group, name = rng.integers(_N_GROUPS, size=n), rng.permutation(_N_GROUPS)
    logits, y = _normal(n, 3, seed=seed), _labels(n)
    first, second = _among(group.tolist(), logits), _among(name[group].tolist(), logits)
    for value in (
        lambda among: irm_risk(logits, y, among, penalty=2.0),
        lambda among: vrex_risk(logits[:, 0], among, penalty=2.0),
        lambda among: mean_bottleneck(logits, among),
        lambda among: mean_coral(logits, among),
        lambda among: mean_mmd(logits, among),
    ):
        torch.testing.assert_close(value(first), value(second), rtol=1e-10, atol=1e-12)


@batches
def test_the_formulas_have_the_gradients_of_their_differences(group):
    logits, y = _normal(len(group), 3), _labels(len(group))
    among = _among(group, logits)
    assert torch.autograd.gradcheck(lambda z: irm_risk(z, y, among, weight=0.5, penalty=3.0), logits)
    assert torch.autograd.gradcheck(lambda z: mean_bottleneck(z, among), logits)
    assert torch.autograd.gradcheck(lambda z: mean_coral(z, among), logits)
    assert torch.autograd.gradcheck(lambda z: mean_mmd(z, among), logits)


@batches
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e4])
def test_risks_and_gradients_are_finite_in_single_precision(group, scale):
    logits, y = _normal(len(group), 3, dtype=torch.float32), _labels(len(group))
    among, z = _among(group, logits), scale * logits
    total = irm_risk(z, y, among, penalty=2.0) + vrex_risk(cross_entropy(z, y), among, penalty=2.0)
    (total + mean_bottleneck(z, among) + mean_coral(z, among) + mean_mmd(z, among)).backward()
    assert total.isfinite()
    assert logits.grad.isfinite().all()


def test_irm_risk_in_single_precision_does_not_depend_on_a_large_offset_of_the_logits():
    group = _BATCHES["missing and small groups"]
    logits, y = _normal(11, 3, dtype=torch.float32).detach().mul(8).round(), _labels(11)
    values = [irm_risk(logits + offset, y, _among(group, logits), penalty=5.0) for offset in (0, 2**20)]
    torch.testing.assert_close(*values, rtol=1e-5, atol=0)


def test_a_common_offset_of_the_features_does_not_drown_their_distance_in_single_precision():
    group = _BATCHES["balanced"]
    features = _normal(30, 4, dtype=torch.float32).detach().mul(64).round()
    near, far = (mean_coral(features + offset, _among(group, features)) for offset in (0, 2**10))
    torch.testing.assert_close(near, far, rtol=1e-4, atol=0)


def test_equal_environments_have_no_distance_and_never_a_negative_one():
    part = _normal(7, 5, dtype=torch.float32).detach().mul(100)
    features, group = part.repeat(3, 1), [0] * 7 + [1] * 7 + [2] * 7
    distance = mean_coral(features, _among(group, features))
    assert 0 <= distance <= 1e-5 * part.var(0).square().mean()


def test_equal_environments_have_no_discrepancy_and_never_a_negative_one():
    part = _normal(7, 5, dtype=torch.float32).detach()
    features, group = part.repeat(3, 1), [0] * 7 + [1] * 7 + [2] * 7
    assert 0 <= mean_mmd(features, _among(group, features)) <= 1e-3


def test_a_common_offset_of_the_features_does_not_drown_their_discrepancy_in_single_precision():
    group = _BATCHES["balanced"]
    features = _normal(30, 4, dtype=torch.float32).detach().mul(64).round().div(64)
    near, far = (mean_mmd(features + offset, _among(group, features)) for offset in (0, 2**10))
    torch.testing.assert_close(near, far, rtol=1e-4, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_nothing_is_read_back_from_the_device(dtype):
    z, ids = torch.empty(6, 3, device="meta", dtype=dtype), torch.empty(6, device="meta", dtype=torch.int64)
    among = environments(ids, n_groups=3, like=z)
    values = [irm_risk(z, ids, among, penalty=1.0), vrex_risk(z[:, 0], among, penalty=1.0)]
    values += [mean_bottleneck(z, among), mean_coral(z, among), mean_mmd(z, among)]
    assert {(value.shape, value.dtype, value.device.type) for value in values} == {((), dtype, "meta")}


_HALVES = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
_LARGE = torch.arange(6000) % 2  # 3,000 examples of each of two environments: half precision counts to 256 or 2,048


def _values_and_gradient(x, like):
    """Every function here of ``x`` [batch, 3], and the gradient of their sum."""
    x = x.detach().requires_grad_()
    y, among = _labels(len(x)), environments(_LARGE, n_groups=3, like=like)
    values = [irm_risk(x, y, among, penalty=7.0), vrex_risk(x[:, 0], among, penalty=7.0)]
    values += [mean_bottleneck(x, among), mean_coral(x, among)]
    return torch.stack([v.double() for v in values]), [torch.autograd.grad(v, x)[0] for v in values]


@_HALVES
def test_large_environments_in_half_precision_are_computed_in_single(dtype):
    x = (_normal(6000, 3) + _LARGE[:, None]).detach().to(dtype)
    values, gradients = _values_and_gradient(x, x)
    expected, exact = _values_and_gradient(x.double(), x.double())
    torch.testing.assert_close(values, expected, rtol=1e-4, atol=1e-6)
    assert {gradient.dtype for gradient in gradients} == {dtype}
    for ours, theirs in zip(gradients, exact, strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=2e-2, atol=1e-6)


def test_autocast_does_not_round_environments_of_half_precision():
    x = (_normal(6000, 3) + _LARGE[:, None]).detach().bfloat16()
    expected, exact = _values_and_gradient(x, x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        values, gradients = _values_and_gradient(x, x)
    assert torch.equal(values, expected)
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(gradients, exact, strict=True))
