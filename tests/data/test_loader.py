"""Batches cover the order, once and whole, from memory or from inputs that are read one by one."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from umix.data.groups import Groups
from umix.data.inputs import Inputs
from umix.data.loader import batches, n_batches
from umix.data.task import Split
from umix.errors import UserError

N = 11


class _Read(Inputs):
    """The rows of a tensor, read one by one; ``broken`` cannot be read."""

    fingerprint = "rows"

    def __init__(self, x, broken=None):
        self.x, self.broken = x, broken

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        if index == self.broken:
            raise UserError(f"row {index} cannot be read.")
        return self.x[index]


def _split():
    rng = np.random.default_rng(0)
    x, y = torch.from_numpy(rng.normal(size=(N, 2, 3))), torch.from_numpy(rng.integers(3, size=N))
    return Split(x, y, Groups.from_ids(torch.from_numpy(rng.integers(4, size=N)), "abcd"))


@pytest.fixture
def memory():
    return _split()


@pytest.fixture(params=["memory", "read"])
def split(request, memory):
    return memory if request.param == "memory" else replace(memory, x=_Read(memory.x))


@given(
    st.lists(st.integers(0, N - 1), max_size=25).map(lambda order: torch.tensor(order, dtype=torch.int64)),
    st.integers(1, 30),
    st.booleans(),
)
@settings(deadline=None, max_examples=50)
def test_batches_cover_every_row_of_the_order_once_and_in_order(order, batch_size, lazy):
    memory = _split()
    got = list(
        batches(replace(memory, x=_Read(memory.x)) if lazy else memory, order, batch_size=batch_size, groups=True)
    )
    assert [len(batch.y) for batch in got[:-1]] == [batch_size] * (len(got) - 1)
    assert all(0 < len(batch.y) <= batch_size for batch in got)
    assert len(got) == n_batches(len(order), batch_size)
    assert [row for batch in got for row in batch.index.tolist()] == order.tolist()
    for batch in got:
        assert torch.equal(batch.x, memory.x[batch.index])
        assert torch.equal(batch.y, memory.y[batch.index])
        assert torch.equal(batch.group, memory.group[batch.index])
        assert batch.host_rows().tolist() == batch.index.tolist()


def test_no_examples_make_no_batches(split):
    assert list(batches(split, torch.zeros(0, dtype=torch.int64), batch_size=4, groups=True)) == []
    assert n_batches(0, 4) == 0


@pytest.mark.parametrize("first", [0, 5])
def test_steps_count_on_from_the_first(split, first):
    got = batches(split, torch.arange(N), batch_size=4, first_step=first)
    assert [batch.step for batch in got] == [first, first + 1, first + 2]


def test_batches_are_oblivious_of_groups_unless_asked(split):
    assert all(batch.group is None for batch in batches(split, torch.arange(N), batch_size=4))
    assert all(batch.group is not None for batch in batches(split, torch.arange(N), batch_size=4, groups=True))


def test_overlapping_groups_do_not_matter_unless_asked_for(memory):
    overlapping = replace(memory, groups=Groups(torch.ones(N, 2).bool(), ("a", "b")))
    assert len(list(batches(overlapping, torch.arange(N), batch_size=4))) == 3
    with pytest.raises(UserError, match="exactly one of the groups"):
        next(batches(overlapping, torch.arange(N), batch_size=4, groups=True))


def test_groups_asked_for_are_the_declared_training_groups(memory):
    declared = Groups.from_ids(torch.arange(N) % 2, ["even", "odd"])
    split = replace(memory, groups=Groups(torch.ones(N, 2).bool(), ("a", "b")), training_groups=declared)
    (batch,) = batches(split, torch.arange(N), batch_size=N, groups=True)
    assert torch.equal(batch.group, torch.arange(N) % 2)


def test_a_row_that_cannot_be_read_is_told_in_its_own_words(memory):
    got = batches(replace(memory, x=_Read(memory.x, broken=5)), torch.arange(N), batch_size=4)
    assert len(next(got).y) == 4
    with pytest.raises(UserError, match=r"^row 5 cannot be read\.$"):
        next(got)


def test_batches_leave_the_global_generators_alone(split):
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
    assert len(list(batches(split, torch.arange(N), batch_size=4))) == 3
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]
    assert random.getstate() == before[2]


def test_changing_a_batch_does_not_change_the_split(memory):
    before = memory.x.clone(), memory.y.clone()
    for batch in batches(memory, torch.arange(N), batch_size=4):
        batch.x.zero_()
        batch.y.zero_()
    assert torch.equal(memory.x, before[0])
    assert torch.equal(memory.y, before[1])
