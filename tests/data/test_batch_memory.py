"""Memory is used again only when nobody refers to it any more."""

import pytest
import torch

from umix.data import batch_memory
from umix.data.batch_memory import empty_batch

SHAPE, CPU = (2, 2**19), torch.device("cpu")


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(batch_memory, "_BLOCKS", [])


def test_memory_that_was_let_go_is_used_again_also_by_smaller_batches():
    first = empty_batch(SHAPE, CPU)
    place = first.data_ptr()
    del first
    again = empty_batch(SHAPE, CPU)
    assert again.data_ptr() == place
    del again
    assert empty_batch((2**20 + 0,), CPU).data_ptr() == place
    assert empty_batch((2, 2**18), CPU).data_ptr() != place  # small ones are the allocator's business


HOLDS = {
    "itself": lambda x: x,
    "slice": lambda x: x[1:, 5:],
    "transposed": lambda x: x.t(),
    "detached": lambda x: x.detach(),
    "numpy": lambda x: torch.from_numpy(x.numpy()[1:]),
    "storage": lambda x: torch.empty(0).set_(x.untyped_storage(), 0, SHAPE),
}


@pytest.mark.parametrize("hold", HOLDS.values(), ids=HOLDS)
def test_memory_that_is_referred_to_is_never_written_again(hold):
    held = hold(empty_batch(SHAPE, CPU).fill_(1))
    assert empty_batch(SHAPE, CPU).fill_(2).eq(2).all()
    assert held.eq(1).all()


def test_memory_that_autograd_remembers_is_not_written_again():
    weight = torch.ones(SHAPE, requires_grad=True)
    product = (empty_batch(SHAPE, CPU).fill_(3) * weight).sum()
    empty_batch(SHAPE, CPU).fill_(7)
    product.backward()
    assert weight.grad.eq(3).all()


def test_memory_made_in_evaluation_serves_training():
    with torch.inference_mode():
        place = empty_batch(SHAPE, CPU).data_ptr()
    x, weight = empty_batch(SHAPE, CPU).fill_(2), torch.ones(SHAPE, requires_grad=True)
    assert x.data_ptr() == place
    (x * weight).sum().backward()
    assert weight.grad.eq(2).all()


def test_only_a_few_blocks_are_kept():
    held = [empty_batch(SHAPE, CPU) for _ in range(9)]
    assert len({x.data_ptr() for x in held}) == 9
    assert len(batch_memory._BLOCKS) == 4
