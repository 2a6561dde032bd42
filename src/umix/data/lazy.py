"""Inputs that are not tensors in memory: read one by one when they are needed, or sliced from a file."""

import abc
import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Protocol, final

from torch import Tensor


class Lazy(Protocol):
    """Inputs that are read when they are needed, one example at a time (images on disk, for instance)."""

    fingerprint: str

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Tensor: ...


@final
class LazyRows:
    """The examples ``index`` of lazy inputs, also read only when they are needed."""

    def __init__(self, x: Lazy, index: Tensor) -> None:
        self._x = x
        self._index = index.tolist()
        self.fingerprint = rows_fingerprint(x.fingerprint, index)

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, index: int) -> Tensor:
        return self._x[self._index[index]]


@final
class LazyParts:
    """The examples of several lazy inputs, one after the other."""

    def __init__(self, parts: Sequence[Lazy]) -> None:
        self._parts = tuple(parts)
        self._ends = list(accumulate(map(len, parts)))
        self.fingerprint = hashlib.sha256("".join(part.fingerprint for part in parts).encode()).hexdigest()[:32]

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, index: int) -> Tensor:
        if not 0 <= index < len(self):
            raise IndexError(f"There are {len(self)} examples, got index {index}.")
        number = bisect_right(self._ends, index)
        return self._parts[number][index - (self._ends[number - 1] if number else 0)]


class Sliced(abc.ABC):
    """Inputs from which a whole batch is sliced at once."""

    fingerprint: str

    @abc.abstractmethod
    def __len__(self) -> int: ...

    @abc.abstractmethod
    def __getitem__(self, index: int) -> Tensor: ...

    @abc.abstractmethod
    def take(self, rows: Tensor) -> Tensor:
        """A copy of these rows on the host, [len(rows), ...]."""

    @abc.abstractmethod
    def rows(self, index: Tensor) -> "Sliced":
        """The examples ``index``, sliced from the same memory."""


@final
class Mapped(Sliced):
    """Inputs in one memory-mapped file, from which batches are sliced; ``values`` is [n, ...] and is never written to.

    The fingerprint is that of what the file was made from, so that nothing has to be read to compute it.
    """

    def __init__(self, values: Tensor, fingerprint: str, index: Tensor | None = None) -> None:
        self._values = values
        self._index = None if index is None else index.cpu()
        self.fingerprint = fingerprint

    def __len__(self) -> int:
        return len(self._values if self._index is None else self._index)

    def __getitem__(self, index: int) -> Tensor:
        return self._values[index if self._index is None else int(self._index[index])].clone()

    def take(self, rows: Tensor) -> Tensor:
        """A copy of these rows, [len(rows), ...]."""
        return self._values.index_select(0, rows if self._index is None else self._index.index_select(0, rows))

    def rows(self, index: Tensor) -> "Mapped":
        """The examples ``index``, sliced from the same file."""
        index = index.cpu()
        chosen = index if self._index is None else self._index.index_select(0, index)
        return Mapped(self._values, rows_fingerprint(self.fingerprint, index), chosen)


def rows_fingerprint(fingerprint: str, index: Tensor) -> str:
    """The fingerprint of the rows ``index`` of inputs whose fingerprint is given."""
    return hashlib.sha256(f"{fingerprint}{index.tolist()}".encode()).hexdigest()[:32]
