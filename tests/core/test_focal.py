import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from umix.core.losses import cross_entropy, focal


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
