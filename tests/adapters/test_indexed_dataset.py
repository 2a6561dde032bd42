"""The index of every example, whatever reads the dataset."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset

from umix import IndexedDataset, UserError

X = torch.arange(20.0)[:, None]
ROWS = TensorDataset(X, torch.arange(20) % 2)


@pytest.mark.system
@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_in_any_order_gives_each_example_its_own_index(workers: int) -> None:
    loader = DataLoader(IndexedDataset(ROWS), batch_size=6, shuffle=True, num_workers=workers)
    seen = [(x, index) for x, _, index in loader]
    assert all(torch.equal(x[:, 0], index.float()) for x, index in seen)
    assert sorted(torch.cat([index for _, index in seen]).tolist()) == list(range(20))


def test_the_index_in_a_subset_is_the_place_in_the_subset() -> None:
    x, _, index = IndexedDataset(Subset(ROWS, [7, 3]))[1]
    assert (x.item(), index) == (3.0, 1)
    assert IndexedDataset(Subset(ROWS, [7, 3]))[-1][2] == 1


@pytest.mark.parametrize("number", [np.int64(3), np.int32(-17), torch.tensor(3)], ids=repr)
def test_numbers_of_other_libraries_give_a_plain_index(number: Any) -> None:
    x, _, index = IndexedDataset(ROWS)[number]
    assert (x.item(), index, type(index)) == (3.0, 3, int)
    (example,) = IndexedDataset(ROWS).__getitems__([number])
    assert (example[2], type(example[2])) == (3, int)


def test_a_slice_is_refused_with_what_to_do_instead() -> None:
    with pytest.raises(UserError, match=r"got slice\(0, 3, None\); take a part of a dataset before: .*Subset"):
        IndexedDataset(ROWS)[0:3]  # type: ignore[index]


def test_examples_that_are_dicts_or_single_values_get_it_too() -> None:
    class Dicts(Dataset[Any]):
        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int) -> dict[str, int]:
            return {"x": index}

    assert IndexedDataset(Dicts())[1] == {"x": 1, "index": 1}
    assert IndexedDataset(["a", "b"])[1] == ("b", 1)  # type: ignore[comparison-overlap]
    with pytest.raises(UserError, match="rename"):
        IndexedDataset([{"index": 0}])[0]


def test_datasets_that_read_batches_together_still_do() -> None:
    class Together(Dataset[Any]):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> Any:
            raise AssertionError("examples must be read together")

        def __getitems__(self, indices: list[int]) -> list[tuple[int, int]]:
            return [(10 * index, 0) for index in indices]

    (batch,) = DataLoader(IndexedDataset(Together()), batch_size=4)
    assert [part.tolist() for part in batch] == [[0, 10, 20, 30], [0, 0, 0, 0], [0, 1, 2, 3]]


def test_a_stream_is_refused() -> None:
    class Stream(IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            return iter(())

    with pytest.raises(UserError, match="Stream"):
        IndexedDataset(Stream())
