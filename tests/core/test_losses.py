"""Cross entropy against NumPy in float64, and what a weight means."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from umix.core.losses import cross_entropy, soft_cross_entropy


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
