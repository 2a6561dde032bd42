"""Inputs that are not a tensor in memory: torch Datasets whose examples are read when a batch needs them."""

import abc
import hashlib
from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor
from torch.utils.data import ConcatDataset, Dataset

#: The examples of a batch, one by one or already in one tensor.
Examples = list[Tensor] | Tensor


class Inputs(Dataset[Tensor], abc.ABC):
    """Examples that are read when they are needed; ``fingerprint`` is a hash of all of them, in order."""

    fingerprint: str

    @abc.abstractmethod
    def __len__(self) -> int: ...

    @abc.abstractmethod
    def __getitem__(self, index: int) -> Tensor: ...

    def __getitems__(self, rows: list[int]) -> Examples:
        """These examples, as torch's DataLoader asks for a batch of them."""
        return [self[row] for row in rows]

    def collate(self, examples: Examples) -> Tensor:
        """One tensor of the ``examples`` of a batch."""
        return examples if isinstance(examples, Tensor) else torch.stack(examples)

    @final
    def take(self, rows: Tensor) -> Tensor:
        """A copy of these rows on the host, [len(rows), ...]."""
        return self.collate(self.__getitems__(rows.tolist()))

    @final
    def rows(self, index: Tensor) -> "Subset":
        """The examples ``index``, also read only when they are needed."""
        return Subset(self, index)


@final
class Subset(Inputs):
    """The examples ``index`` of other inputs."""

    def __init__(self, inputs: Inputs, index: Tensor) -> None:
        self._inputs, self._index = inputs, index.tolist()
        self.fingerprint = hashlib.sha256(f"{inputs.fingerprint}{self._index}".encode()).hexdigest()[:32]

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, index: int) -> Tensor:
        return self._inputs[self._index[index]]

    def __getitems__(self, rows: list[int]) -> Examples:
        return self._inputs.__getitems__([self._index[row] for row in rows])

    def collate(self, examples: Examples) -> Tensor:
        return self._inputs.collate(examples)


@final
class Concat(Inputs):
    """The examples of several inputs of one kind, one after the other."""

    def __init__(self, parts: Sequence[Inputs]) -> None:
        self._parts = tuple(parts)
        self._all: ConcatDataset[Tensor] = ConcatDataset(parts)
        self.fingerprint = hashlib.sha256("".join(part.fingerprint for part in parts).encode()).hexdigest()[:32]

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, index: int) -> Tensor:
        example: Tensor = self._all[index]
        return example

    def collate(self, examples: Examples) -> Tensor:
        return self._parts[0].collate(examples)


@final
class Mapped(Inputs):
    """Inputs in one memory-mapped file, from which batches are sliced; ``values`` is [n, ...] and is never written to.

    The fingerprint is that of what the file was made from, so that nothing has to be read to compute it.
    """

    def __init__(self, values: Tensor, fingerprint: str) -> None:
        self._values, self.fingerprint = values, fingerprint

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: int) -> Tensor:
        return self._values[index].clone()

    def __getitems__(self, rows: list[int]) -> Tensor:
        return self._values.index_select(0, torch.tensor(rows, dtype=torch.int64))
