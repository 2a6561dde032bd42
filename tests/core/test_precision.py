import pytest
import torch

from umix.core.precision import wide, widened


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


def test_matrix_products_of_half_precision_are_not_rounded_by_autocast():
    x = torch.full((1, 1), 2.0, dtype=torch.bfloat16)
    product = widened(lambda a: a @ torch.full((1, 1), 128.5))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (x.float() @ torch.full((1, 1), 128.5)).item() == 256
        assert product(x).item() == 257
        assert (x.float() @ torch.full((1, 1), 128.5)).item() == 256
    assert product(x).item() == 257
