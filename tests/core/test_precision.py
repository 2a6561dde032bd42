import pytest
import torch

from umix.core.precision import wide, without_autocast


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_becomes_single_and_its_gradient_half_again(dtype):
    x = torch.ones(3, dtype=dtype, requires_grad=True)
    wide(x).sum().backward()
    assert wide(x).dtype == torch.float32
    assert x.grad.dtype == dtype


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_single_and_double_precision_are_not_copied(dtype):
    x = torch.ones(3, dtype=dtype)
    assert wide(x) is x


def test_matrix_products_are_not_rounded_by_autocast():
    x = torch.full((1, 1), 257.0)
    product = without_autocast(lambda a: a @ torch.ones(1, 1))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (x @ torch.ones(1, 1)).item() == 256
        assert product(x).item() == 257
        assert (x @ torch.ones(1, 1)).item() == 256


def test_devices_that_know_no_autocast_are_served_too():
    assert without_autocast(torch.square)(torch.empty(2, device="meta")).shape == (2,)
