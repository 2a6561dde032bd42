"""Cross entropy against NumPy in float64, and what a weight means."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from umix.core.losses import cross_entropy, focal, generalized_cross_entropy, soft_cross_entropy


def _logits(seed, n, n_classes):
    return np.random.default_rng(seed).normal(0, 3, (n, n_classes))


def _reference(logits, y):
    return np.array([np.log(np.exp(row).sum()) - row[label] for row, label in zip(logits, y, strict=True)])


@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(2, 5))
@settings(deadline=None, max_examples=40)
def test_cross_entropy_is_minus_the_log_probability_of_the_label(seed, n, n_classes):
    logits = _logits(seed, n, n_classes)
    y = np.random.default_rng(seed + 1).integers(n_classes, size=n)
    loss = cross_entropy(torch.from_numpy(logits), torch.from_numpy(y))
    np.testing.assert_allclose(loss.numpy(), _reference(logits, y), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_equal_logits_cost_the_log_of_the_number_of_classes(n_classes):
    loss = cross_entropy(torch.full((2, n_classes), 5.0, dtype=torch.float64), torch.tensor([0, n_classes - 1]))
    assert loss.tolist() == pytest.approx([math.log(n_classes)] * 2)


def test_a_constant_added_to_the_logits_changes_nothing():
    logits, y = torch.from_numpy(_logits(0, 4, 3)), torch.tensor([0, 1, 2, 0])
    torch.testing.assert_close(cross_entropy(logits + 7, y), cross_entropy(logits, y))


def test_extreme_logits_cost_a_finite_number():
    assert cross_entropy(torch.tensor([[1e4, -1e4], [1e4, -1e4]]), torch.tensor([0, 1])).tolist() == [0.0, 2e4]


def test_cross_entropy_passes_gradcheck():
    logits, y = torch.from_numpy(_logits(2, 4, 3)).requires_grad_(), torch.tensor([0, 1, 2, 0])
    assert torch.autograd.gradcheck(lambda logits: cross_entropy(logits, y), (logits,))


def test_a_weight_of_k_is_k_copies_of_the_row_in_the_risk_and_its_gradient():
    copies = torch.tensor([1, 3, 0, 2])
    logits, y = torch.from_numpy(_logits(3, 4, 3)), torch.tensor([2, 0, 1, 1])
    theta = torch.eye(3, dtype=torch.float64, requires_grad=True)  # a last layer shared by all rows
    weighted = (copies * cross_entropy(logits @ theta, y)).sum() / copies.sum()
    repeated = cross_entropy(logits.repeat_interleave(copies, 0) @ theta, y.repeat_interleave(copies)).mean()
    torch.testing.assert_close(weighted, repeated)
    torch.testing.assert_close(*(torch.autograd.grad(risk, theta)[0] for risk in (weighted, repeated)))


def test_a_nan_stays_in_its_own_example():
    loss = cross_entropy(torch.tensor([[math.nan, 0.0], [0.0, 0.0]]), torch.tensor([1, 1]))
    assert loss.isnan().tolist() == [True, False]


def test_cross_entropy_of_no_examples_is_empty():
    assert cross_entropy(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64)).shape == (0,)


def test_soft_cross_entropy_is_the_weighted_sum_of_cross_entropies():
    rng = np.random.default_rng(0)
    logits, w = torch.from_numpy(rng.normal(size=(6, 3, 4))), torch.from_numpy(rng.random((6, 3)))
    y = torch.from_numpy(rng.integers(0, 4, 6))
    targets = w[:, :, None] * torch.eye(4).double()[y][:, None, :]
    expected = sum(w[i, m] * cross_entropy(logits[i, m][None], y[i][None])[0] for i in range(6) for m in range(3))
    torch.testing.assert_close(soft_cross_entropy(logits, targets), expected)


def test_soft_cross_entropy_has_the_gradient_of_its_formula():
    rng = np.random.default_rng(1)
    logits = torch.from_numpy(rng.normal(size=(4, 2, 3))).requires_grad_()
    targets = torch.from_numpy(rng.random((4, 2, 3)))
    assert torch.autograd.gradcheck(lambda z: 3 * soft_cross_entropy(z, targets), (logits,))


def test_soft_cross_entropy_of_no_examples_is_zero():
    assert float(soft_cross_entropy(torch.zeros(0, 2), torch.zeros(0, 2))) == 0.0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_a_sum_of_soft_losses_in_half_precision_is_that_of_single(dtype):
    logits = torch.tensor(_logits(0, 2000, 2), dtype=dtype, requires_grad=True)
    targets = torch.full((2000, 2), 50.0)  # the sum does not fit into float16
    total = soft_cross_entropy(logits, targets)
    torch.testing.assert_close(total, soft_cross_entropy(logits.detach().float(), targets))
    total.backward()
    assert logits.grad.dtype == dtype


def _batch(dtype=torch.float64, n=6, classes=3, scale=3.0):
    rng = np.random.default_rng(0)
    logits = torch.tensor(scale * rng.normal(size=(n, classes)), dtype=dtype, requires_grad=True)
    return logits, torch.tensor(rng.integers(classes, size=n))


def test_focal_with_gamma_zero_is_cross_entropy_to_the_bit():
    logits, y = _batch(torch.float32)
    assert torch.equal(focal(logits, y, gamma=0.0), cross_entropy(logits, y))


@pytest.mark.parametrize("gamma", [0.3, 0.5, 1.0, 2.0, 5.0])
def test_focal_is_the_formula(gamma):
    logits, y = _batch()
    z = logits.detach().numpy()
    p = (np.exp(z) / np.exp(z).sum(1, keepdims=True))[np.arange(len(z)), y.numpy()]
    np.testing.assert_allclose(focal(logits, y, gamma=gamma).detach(), -((1 - p) ** gamma) * np.log(p), rtol=1e-12)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 2.0])
def test_focal_gradient_is_that_of_its_differences(gamma):
    logits, y = _batch()
    assert torch.autograd.gradcheck(lambda z: focal(z, y, gamma=gamma), logits)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("gamma", [1e-3, 0.25, 0.5, 0.999, 1.0, 1.5, 2.0])
def test_a_certain_and_right_example_costs_nothing_and_has_gradient_zero(gamma, dtype):
    logits = torch.tensor([[1e4, 0.0], [200.0, 0.0]], dtype=dtype, requires_grad=True)
    loss = focal(logits, torch.tensor([0, 0]), gamma=gamma)
    loss.sum().backward()
    torch.testing.assert_close(loss, torch.zeros_like(loss), rtol=0, atol=1e-80 if dtype == torch.float64 else 0)
    torch.testing.assert_close(logits.grad, torch.zeros_like(logits), rtol=0, atol=1e-80)


@given(
    z=st.lists(st.floats(-1e4, 1e4, width=32), min_size=2, max_size=5),
    gamma=st.floats(0, 8),
)
@settings(deadline=None)
def test_focal_and_its_gradient_are_finite_in_single_precision(z, gamma):
    logits = torch.tensor([z], dtype=torch.float32, requires_grad=True)
    loss = focal(logits, torch.tensor([0]), gamma=gamma)
    loss.sum().backward()
    assert loss.isfinite().all()
    assert logits.grad.isfinite().all()
    assert 0 <= loss <= cross_entropy(logits, torch.tensor([0])) * (1 + 1e-6)


def test_focal_keeps_dtype_and_device_and_reads_nothing_back():
    logits, y = torch.empty(4, 3, device="meta", dtype=torch.float64), torch.empty(4, device="meta", dtype=torch.int64)
    loss = focal(logits, y, gamma=0.5)
    assert (loss.shape, loss.dtype, loss.device.type) == ((4,), torch.float64, "meta")


def batch(dtype=torch.float64, n=6, classes=3, scale=3.0):
    rng = np.random.default_rng(0)
    logits = torch.tensor(scale * rng.normal(size=(n, classes)), dtype=dtype, requires_grad=True)
    return logits, torch.tensor(rng.integers(classes, size=n))


def probability(logits, y):
    z = logits.detach().numpy()
    return (np.exp(z) / np.exp(z).sum(1, keepdims=True))[np.arange(len(z)), y.numpy()]


@pytest.mark.parametrize("q", [0.1, 0.5, 0.7, 1.0])
def test_it_is_the_formula(q):
    logits, y = batch()
    expected = (1 - probability(logits, y) ** q) / q
    np.testing.assert_allclose(generalized_cross_entropy(logits, y, q=q).detach(), expected, rtol=1e-12)


def test_q_one_is_half_the_absolute_error():
    logits, y = batch()
    onehot = torch.nn.functional.one_hot(y, 3)
    error = (logits.softmax(1) - onehot).abs().sum(1)
    torch.testing.assert_close(generalized_cross_entropy(logits, y, q=1.0), error / 2)


def test_q_zero_is_cross_entropy_to_the_bit_and_the_limit_of_small_q():
    logits, y = batch()
    assert torch.equal(generalized_cross_entropy(logits, y, q=0.0), cross_entropy(logits, y))
    for q in (1e-4, 1e-8, 1e-12):
        near = generalized_cross_entropy(logits, y, q=q)
        torch.testing.assert_close(near, cross_entropy(logits, y), rtol=20 * q, atol=1e-14)


@pytest.mark.parametrize("q", [0.0, 0.3, 0.7, 1.0])
def test_its_gradient_is_that_of_its_differences(q):
    logits, y = batch()
    assert torch.autograd.gradcheck(lambda z: generalized_cross_entropy(z, y, q=q), logits)


def test_its_gradient_is_p_to_the_q_times_that_of_cross_entropy():
    logits, y = batch()
    (ours,) = torch.autograd.grad(generalized_cross_entropy(logits, y, q=0.7).sum(), logits)
    (plain,) = torch.autograd.grad(cross_entropy(logits, y).sum(), logits)
    np.testing.assert_allclose(ours, probability(logits, y)[:, None] ** 0.7 * plain.numpy(), rtol=1e-12)


@given(z=st.lists(st.floats(-1e4, 1e4, width=32), min_size=2, max_size=5), q=st.floats(1e-3, 1))
def test_it_and_its_gradient_are_finite_and_it_lies_below_cross_entropy(z, q):
    logits, y = torch.tensor([z], dtype=torch.float32, requires_grad=True), torch.tensor([0])
    loss = generalized_cross_entropy(logits, y, q=q)
    loss.sum().backward()
    assert loss.isfinite().all()
    assert logits.grad.isfinite().all()
    assert 0 <= loss <= min(cross_entropy(logits, y).item(), 1 / q) * (1 + 1e-5)
