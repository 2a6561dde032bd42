"""Texts as token ids, stored one after the other; a batch is as long as its longest text."""

import hashlib
from collections.abc import Sequence
from typing import Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from umix.data.lazy import Sliced, rows_fingerprint


@final
class TokenIds(Sliced):
    """Ids of text i are ``flat[offsets[i] : offsets[i + 1]]``; batches are int64 [batch, longest], filled up with ``pad``.

    Ids are kept as int32, without padding: texts differ much in length. Everything happens on the host.
    """

    def __init__(
        self, flat: Tensor, offsets: Tensor, pad: int, fingerprint: str = "", index: Tensor | None = None
    ) -> None:
        self._flat, self._offsets, self._index, self.pad = flat, offsets, index, pad
        self.fingerprint = fingerprint or _fingerprint(flat, offsets, pad)

    @classmethod
    def of(cls, texts: Sequence[NDArray[np.int32]], pad: int) -> Self:
        """The ids of these texts; none may be empty."""
        lengths = np.fromiter((len(ids) for ids in texts), dtype=np.int64, count=len(texts))
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        flat = np.concatenate(texts) if len(texts) else np.zeros(0, dtype=np.int32)
        return cls(torch.from_numpy(flat), torch.from_numpy(offsets), pad)

    def __len__(self) -> int:
        return len(self._offsets) - 1 if self._index is None else len(self._index)

    def __getitem__(self, index: int) -> Tensor:
        """The ids of one text, int64 [length]."""
        row = index if self._index is None else int(self._index[index])
        return self._flat[self._offsets[row] : self._offsets[row + 1]].long()

    def take(self, rows: Tensor) -> Tensor:
        chosen = rows if self._index is None else self._index.index_select(0, rows)
        begin = self._offsets.index_select(0, chosen)
        length = self._offsets.index_select(0, chosen + 1) - begin
        places = torch.arange(int(length.max()) if len(rows) else 0)
        inside = places < length[:, None]
        where = (begin[:, None] + places).where(inside, 0)
        return self._flat[where].long().where(inside, self.pad)

    def rows(self, index: Tensor) -> "TokenIds":
        index = index.cpu()
        chosen = index if self._index is None else self._index.index_select(0, index)
        return TokenIds(self._flat, self._offsets, self.pad, rows_fingerprint(self.fingerprint, index), chosen)


def _fingerprint(flat: Tensor, offsets: Tensor, pad: int) -> str:
    digest = hashlib.sha256(f"token ids {pad} ".encode())
    digest.update(flat.numpy().data)
    digest.update(offsets.numpy().data)
    return digest.hexdigest()[:32]
