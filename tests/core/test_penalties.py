import numpy as np
import pytest
import torch

from umix.core.losses import cross_entropy
from umix.core.penalties import bottleneck, coral, irm, mmd, vrex

_SIZES = [0, 1, 2, 3, 8]


def _normal(*shape, seed=0, dtype=torch.float64):
    return torch.tensor(np.random.default_rng(seed).normal(size=shape), dtype=dtype).requires_grad_()


def _labels(n, classes=3):
    return torch.tensor(np.random.default_rng(1).integers(classes, size=n))


def _scale_gradient(logits, y):
    scale = torch.ones((), dtype=logits.dtype, requires_grad=True)
    (gradient,) = torch.autograd.grad(cross_entropy(scale * logits, y).mean(), scale, create_graph=True)
    return gradient


@pytest.mark.parametrize("n", [2, 3, 8, 17])
def test_irm_is_the_product_of_the_halves_scale_gradients(n):
    logits, y = _normal(n, 3), _labels(n)
    expected = _scale_gradient(logits[::2], y[::2]) * _scale_gradient(logits[1::2], y[1::2])
    penalty = irm(logits, y)
    torch.testing.assert_close(penalty, expected, rtol=1e-12, atol=1e-15)
    ours, theirs = (torch.autograd.grad(value, logits)[0] for value in (penalty, expected))
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-15)


def test_irm_of_two_independent_examples_is_the_squared_gradient_on_average():
    logits, y = _normal(12, 3, seed=3).detach(), _labels(12)
    pairs = [irm(logits[[i, j]], y[[i, j]]) for i in range(12) for j in range(12)]
    torch.testing.assert_close(torch.stack(pairs).mean(), _scale_gradient(logits, y).detach() ** 2, rtol=1e-12, atol=0)


@pytest.mark.parametrize("n", [0, 1])
def test_irm_without_two_halves_is_zero(n):
    logits = _normal(n, 3, dtype=torch.float32)
    penalty = irm(logits, _labels(n))
    penalty.backward()
    assert penalty == 0
    assert torch.equal(logits.grad, torch.zeros_like(logits))


def test_irm_in_single_precision_does_not_depend_on_a_large_offset_of_the_logits():
    logits, y = _normal(8, 3, dtype=torch.float32).detach().mul(8).round(), _labels(8)
    torch.testing.assert_close(irm(logits + 2**20, y), irm(logits, y), rtol=1e-6, atol=0)


def test_vrex_is_the_variance_over_environments():
    risks = _normal(5)
    np.testing.assert_allclose(vrex(risks).item(), np.var(risks.detach().numpy()), rtol=1e-13)


def test_vrex_leaves_absent_environments_out_whatever_their_risk():
    risks = torch.tensor([1.0, float("nan"), 4.0, 1e30], dtype=torch.float64, requires_grad=True)
    penalty = vrex(risks, present=torch.tensor([True, False, True, False]))
    penalty.backward()
    assert penalty == 2.25
    assert risks.grad.tolist() == [-1.5, 0, 1.5, 0]


@pytest.mark.parametrize(("n_a", "n_b"), [(2, 2), (5, 9), (30, 4)])
def test_coral_is_the_distance_of_means_and_covariances(n_a, n_b):
    a, b = _normal(n_a, 3), _normal(n_b, 3, seed=1)
    x, z = a.detach().numpy(), b.detach().numpy()
    expected = ((x.mean(0) - z.mean(0)) ** 2).mean() + ((np.cov(x.T) - np.cov(z.T)) ** 2).mean()
    np.testing.assert_allclose(coral(a, b).item(), expected, rtol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 50])
def test_bottleneck_is_the_mean_unbiased_variance(n):
    features = _normal(n, 4)
    np.testing.assert_allclose(bottleneck(features).item(), features.detach().numpy().var(0, ddof=1).mean(), rtol=1e-12)


@pytest.mark.parametrize("n", [0, 1])
def test_bottleneck_without_two_examples_is_zero(n):
    features = _normal(n, 4)
    bottleneck(features).backward()
    assert bottleneck(features) == 0
    assert torch.equal(features.grad, torch.zeros_like(features))


@pytest.mark.parametrize("n_b", _SIZES)
@pytest.mark.parametrize("n_a", _SIZES)
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e4])
def test_coral_has_a_finite_gradient_in_single_precision_and_is_zero_without_a_side(n_a, n_b, scale):
    a, b = _normal(n_a, 3, dtype=torch.float32), _normal(n_b, 3, seed=1, dtype=torch.float32)
    distance = coral(scale * a, scale * b)
    distance.backward()
    assert distance.isfinite()
    assert a.grad.isfinite().all()
    assert b.grad.isfinite().all()
    assert distance == 0 or (n_a and n_b)


@pytest.mark.parametrize("n", _SIZES)
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e4])
def test_irm_and_bottleneck_have_finite_gradients_in_single_precision(n, scale):
    logits = _normal(n, 3, dtype=torch.float32)
    (irm(scale * logits, _labels(n)) + bottleneck(scale * logits)).backward()
    assert logits.grad.isfinite().all()


def test_the_penalties_have_the_gradients_of_their_differences():
    a, b, y = _normal(5, 3), _normal(4, 3, seed=1), _labels(5)
    assert torch.autograd.gradcheck(lambda z: irm(z, y), a)
    assert torch.autograd.gradcheck(coral, (a, b))
    assert torch.autograd.gradcheck(bottleneck, a)
    present = torch.tensor([True, False, True, True])
    assert torch.autograd.gradcheck(lambda risks: vrex(risks, present=present), _normal(4))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_penalties_keep_dtype_and_device_and_read_nothing_back(dtype):
    z, y = torch.empty(4, 3, device="meta", dtype=dtype), torch.empty(4, device="meta", dtype=torch.int64)
    present = torch.empty(4, device="meta", dtype=torch.bool)
    values = [irm(z, y), vrex(z[:, 0]), vrex(z[:, 0], present=present), coral(z, z), coral(z, z[:0]), bottleneck(z)]
    assert {(value.shape, value.dtype, value.device.type) for value in values} == {((), dtype, "meta")}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_penalties_in_half_precision_are_those_of_single(dtype):
    x = (200 + 60 * _normal(5001, 3)).detach().to(dtype)  # sums of squares do not fit into float16
    y = _labels(5001)
    for penalty in (
        lambda z: irm(z, y),
        bottleneck,
        lambda z: vrex(z[:, 0]),
        lambda z: coral(z[:2500], 2 * z[2500:]),
    ):
        torch.testing.assert_close(penalty(x), penalty(x.float()), rtol=1e-5, atol=0)


@pytest.mark.parametrize("n", _SIZES[1:])
@pytest.mark.parametrize("m", _SIZES[1:])
def test_mmd_is_what_numpy_says_and_symmetric(n, m):
    a, b = _normal(n, 3), _normal(m, 3, seed=1)
    x, z = a.detach().numpy(), b.detach().numpy()

    def kernel(p, q):
        squared = np.array([[np.sum((u - v) ** 2) for v in q] for u in p])
        return np.mean([np.exp(-squared * 10.0**power) for power in range(-3, 4)], axis=(1, 2)).sum()

    np.testing.assert_allclose(mmd(a, b).item(), kernel(x, x) + kernel(z, z) - 2 * kernel(x, z), rtol=1e-12)
    torch.testing.assert_close(mmd(a, b), mmd(b, a), rtol=1e-12, atol=0)


def test_mmd_of_a_set_and_itself_or_none_is_zero_with_a_finite_gradient():
    a = _normal(6, 3)
    for other in (a, a[torch.randperm(6, generator=torch.Generator().manual_seed(0))], a[:0]):
        value = mmd(a, other)
        (gradient,) = torch.autograd.grad(value, a)
        assert abs(value.item()) < 1e-14
        assert gradient.isfinite().all()
