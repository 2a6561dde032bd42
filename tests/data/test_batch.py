"""A batch is a frozen view on some rows of a split."""

import dataclasses

import numpy as np
import pytest
import torch

from umix.data.batch import Batch


def test_a_batch_knows_no_groups_unless_told():
    assert Batch(torch.zeros(1, 2), torch.tensor([0]), torch.tensor([7])).group is None


def test_a_batch_is_frozen():
    batch = Batch(torch.zeros(1, 2), torch.tensor([0]), torch.tensor([7]))
    with pytest.raises(dataclasses.FrozenInstanceError):
        batch.group = torch.tensor([0])


def test_groups_that_were_not_declared_cannot_be_known():
    batch = Batch(torch.zeros(1, 2), torch.tensor([0]), torch.tensor([7]))
    with pytest.raises(ValueError, match="must set needs_groups"):
        batch.known_group()
    assert dataclasses.replace(batch, group=torch.tensor([3])).known_group().tolist() == [3]


@pytest.mark.parametrize("rows", [None, np.array([7, 2])], ids=["from the index", "given"])
def test_the_rows_of_a_batch_are_its_index_on_the_host(rows):
    batch = Batch(torch.zeros(2, 2), torch.tensor([0, 1]), torch.tensor([7, 2]), rows=rows)
    assert isinstance(batch.host_rows(), np.ndarray)
    assert batch.host_rows().tolist() == [7, 2]


def test_batches_are_compared_by_identity_not_by_tensors():
    x, y = torch.zeros(2, 2), torch.tensor([0, 1])
    first, second = Batch(x, y, y), Batch(x, y, y)
    assert first != second  # comparing fields would ask tensors for their truth
    assert len({first, second}) == 2
