"""A batch is a frozen view on some rows of a split."""

import dataclasses

import pytest
import torch

from umix.data.batch import Batch


def test_a_batch_knows_no_groups_unless_told():
    assert Batch(torch.zeros(1, 2), torch.tensor([0]), torch.tensor([7])).group is None


def test_a_batch_is_frozen():
    batch = Batch(torch.zeros(1, 2), torch.tensor([0]), torch.tensor([7]))
    with pytest.raises(dataclasses.FrozenInstanceError):
        batch.group = torch.tensor([0])


def test_batches_are_compared_by_identity_not_by_tensors():
    x, y = torch.zeros(2, 2), torch.tensor([0, 1])
    first, second = Batch(x, y, y), Batch(x, y, y)
    assert first != second  # comparing fields would ask tensors for their truth
    assert len({first, second}) == 2
