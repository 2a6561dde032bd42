"""Any map-style dataset with the index of every example, so that a loop can look up its weight and record its prediction."""

import operator
from collections.abc import Mapping, Sequence
from typing import Any, SupportsIndex, final

from torch.utils.data import Dataset, IterableDataset

from umix.errors import UserError

#: The entry of a dict that holds the index.
INDEX = "index"


@final
class IndexedDataset(Dataset[Any]):
    """``dataset`` whose examples also hold their index: ``(x, y)`` becomes ``(x, y, index)``, a dict gets the entry ``"index"``.

    The index is the place in ``dataset``, whatever order, sampler or process reads it.

    Args:
        dataset: any dataset with a length and examples by number; a list will do.

    >>> IndexedDataset([("a", 0), ("b", 1)])[1]
    ('b', 1, 1)

    """

    def __init__(self, dataset: Any) -> None:
        if (
            isinstance(dataset, IterableDataset)
            or not hasattr(dataset, "__getitem__")
            or not hasattr(dataset, "__len__")
        ):
            raise UserError(
                f"IndexedDataset must be given a dataset with a length and examples by number, got {type(dataset).__name__}; "
                "read a stream into a list first."
            )
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: SupportsIndex) -> Any:
        place = self._place(index)
        return _with_index(self.dataset[index], place)

    def __getitems__(self, indices: Sequence[SupportsIndex]) -> list[Any]:
        """The examples of a batch, which some datasets read faster together."""
        read = getattr(self.dataset, "__getitems__", None)
        examples = [self.dataset[index] for index in indices] if read is None else read(indices)
        return [_with_index(example, self._place(index)) for example, index in zip(examples, indices, strict=True)]

    def _place(self, index: SupportsIndex) -> int:
        """The place of an example, counted from the beginning, as a number of Python."""
        try:
            place = operator.index(index)
        except TypeError:
            raise UserError(
                f"IndexedDataset must be asked for one example by its number, got {index!r}; take a part of a dataset before: "
                "IndexedDataset(torch.utils.data.Subset(dataset, range(10)))."
            ) from None
        return place if place >= 0 else len(self) + place


def _with_index(example: Any, index: int) -> Any:
    if isinstance(example, Mapping):
        if INDEX in example:
            raise UserError(
                f'An example must have no entry "{INDEX}" before its index is added, but it has; rename it.'
            )
        return {**example, INDEX: index}
    if isinstance(example, tuple | list):
        return (*example, index)
    return example, index
