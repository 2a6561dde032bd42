"""Inputs that are not tensors in memory: read one by one when they are needed, or sliced from a file."""

import hashlib
from typing import Protocol, final

from torch import Tensor


class Lazy(Protocol):
    """Inputs that are read when they are needed, one example at a time (images on disk, for instance)."""

    fingerprint: str

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Tensor: ...


@final
class LazyRows:
    """The examples ``index`` of lazy inputs, as lazy as they are."""

    def __init__(self, x: Lazy, index: Tensor) -> None:
        self._x = x
        self._index = index.tolist()
        self.fingerprint = _rows_fingerprint(x.fingerprint, index)

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, index: int) -> Tensor:
        return self._x[self._index[index]]


@final
class Mapped:
    """Inputs that lie in one memory-mapped file, of which batches are sliced; ``values`` is [n, ...] and is never written to.

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
        return Mapped(self._values, _rows_fingerprint(self.fingerprint, index), chosen)


def _rows_fingerprint(fingerprint: str, index: Tensor) -> str:
    return hashlib.sha256(f"{fingerprint}{index.tolist()}".encode()).hexdigest()[:32]
