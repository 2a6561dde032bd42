"""Lazy inputs one after the other."""

import pytest
import torch
from torch import Tensor

from umix.data.lazy import LazyParts, LazyRows


class Stored:
    def __init__(self, *values: int) -> None:
        self.values, self.fingerprint = values, str(values)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int) -> Tensor:
        return torch.tensor(self.values[index])


def test_parts_follow_each_other_and_empty_ones_are_skipped() -> None:
    parts = LazyParts([Stored(), Stored(1, 2), Stored(), LazyRows(Stored(3, 4, 5), torch.tensor([2, 0]))])
    assert [int(parts[i]) for i in range(len(parts))] == [1, 2, 5, 3]
    assert len(LazyParts([])) == 0


@pytest.mark.parametrize("index", [-1, 2])
def test_an_index_outside_is_refused(index: int) -> None:
    with pytest.raises(IndexError, match="There are 2 examples"):
        LazyParts([Stored(1), Stored(2)])[index]


def test_the_fingerprint_depends_on_the_parts_and_their_order() -> None:
    first, second = Stored(1), Stored(2)
    assert LazyParts([first, second]).fingerprint == LazyParts([Stored(1), Stored(2)]).fingerprint
    assert LazyParts([first, second]).fingerprint != LazyParts([second, first]).fingerprint
