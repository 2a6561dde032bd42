import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from umix.core.losses import cross_entropy, generalized_cross_entropy


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
