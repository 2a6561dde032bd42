"""Texts as token ids, stored one after the other; a batch is as long as its longest text."""

import hashlib
from collections.abc import Sequence
from typing import Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from umix.data.inputs import Inputs


@final
class TokenIds(Inputs):
    """Ids of text i are ``flat[offsets[i] : offsets[i + 1]]``; batches are int64 [batch, longest], filled up with ``pad``.

    Ids are kept as int32, without padding: texts differ much in length. Everything happens on the host.
    """

    def __init__(self, flat: Tensor, offsets: Tensor, pad: int) -> None:
        self._flat, self._offsets, self.pad = flat, offsets.tolist(), pad
        digest = hashlib.sha256(f"token ids {pad} ".encode())
        digest.update(flat.numpy().data)
        digest.update(offsets.numpy().data)
        self.fingerprint = digest.hexdigest()[:32]

    @classmethod
    def of(cls, texts: Sequence[NDArray[np.int32]], pad: int) -> Self:
        """The ids of these texts; none may be empty."""
        lengths = np.fromiter((len(ids) for ids in texts), dtype=np.int64, count=len(texts))
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        flat = np.concatenate(texts) if len(texts) else np.zeros(0, dtype=np.int32)
        return cls(torch.from_numpy(flat), torch.from_numpy(offsets), pad)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, index: int) -> Tensor:
        """The ids of one text, int64 [length]."""
        return self._flat[self._offsets[index] : self._offsets[index + 1]].long()

    def collate(self, examples: Sequence[Tensor]) -> Tensor:
        return pad_sequence(list(examples), batch_first=True, padding_value=self.pad)
