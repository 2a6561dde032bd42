"""The tokenizer of a pretrained net: texts become the ids that the net was trained on, stored one after the other."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from umix.data.inputs import Examples, Inputs
from umix.errors import Setting, UserError
from umix.quiet_transformers import quiet_transformers

_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt", "vocab.json", "merges.txt")
_AT_ONCE = 4096


def tokenizer_of(net: str) -> dict[str, str]:
    """The tokenizer option for the net called ``net``: that of the model for ``hf:`` nets, none for others."""
    provider, _, model = net.partition(":")
    return {"tokenizer": model} if provider == "hf" else {}


def tokenizer_hash(model: str) -> str:
    """A hash of the tokenizer's files in a local folder; for a name of the hub, a hash of the name."""
    folder = Path(model).expanduser()
    digest = hashlib.sha256(b"" if folder.is_dir() else model.encode())
    for name in _FILES:
        if (folder / name).is_file():
            digest.update(name.encode() + (folder / name).read_bytes())
    return digest.hexdigest()[:32]


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

    def collate(self, examples: Examples) -> Tensor:
        return pad_sequence(list(examples), batch_first=True, padding_value=self.pad)


@final
class Tokenizer:
    """Turns texts into at most ``length`` ids; ``written`` is the tokenizer as JSON, ``pad`` the id of padding."""

    def __init__(self, written: str, *, pad: int, length: int) -> None:
        try:
            import tokenizers
        except ImportError:
            raise _missing() from None
        try:
            self._inner = tokenizers.Tokenizer.from_str(written)
        except Exception as error:  # the library raises plain exceptions
            raise UserError(f"The tokenizer must be a whole tokenizer.json, but it cannot be read ({error}).") from None
        self._inner.no_padding()
        self._inner.enable_truncation(length)
        self.written, self.pad, self.length = written, pad, length

    @classmethod
    def of(cls, model: str, *, length: int) -> Self:
        """The tokenizer that comes with ``model``, a local folder or a name of the Hugging Face hub.

        A folder never asks the network; a name is looked up in the local cache first.
        """
        tokenizer = _load(model)
        if not getattr(tokenizer, "is_fast", False):
            raise UserError(
                f"The tokenizer of {model} must be a fast one (tokenizer.json); save it again with a current transformers."
            )
        pad, longest = tokenizer.pad_token_id, tokenizer.model_max_length
        if pad is None:
            raise UserError(
                f"The tokenizer of {model} must have a padding token to make batches of texts; it has none."
            )
        return cls(tokenizer.backend_tokenizer.to_str(), pad=int(pad), length=int(min(length, longest)))

    def encode(self, texts: Sequence[str]) -> tuple[TokenIds, int]:
        """The ids of ``texts``, and how many of these were longer than ``length`` and cut."""
        codes, cut = [], 0
        for begin in range(0, len(texts), _AT_ONCE):
            for encoding in self._inner.encode_batch(list(texts[begin : begin + _AT_ONCE])):
                ids = encoding.ids or [self.pad]  # where an empty text has no ids
                cut += bool(encoding.overflowing)
                codes.append(np.array(ids, dtype=np.int32))
        return TokenIds.of(codes, self.pad), cut


def _load(model: str) -> Any:
    try:
        import transformers
    except ImportError:
        raise _missing() from None
    folder = Path(model).expanduser()
    local = folder.is_dir() or model.startswith((".", os.sep, "~"))
    if local and not folder.is_dir():
        raise UserError(f"There is no folder {model} with a tokenizer (tokenizer.json).")
    reason = ""
    for offline in (True,) if local else (True, False):
        try:
            with quiet_transformers(transformers):
                return transformers.AutoTokenizer.from_pretrained(
                    folder if local else model, local_files_only=offline, trust_remote_code=False, use_fast=True
                )
        except (
            Exception
        ) as error:  # transformers raises many types where files are missing or the hub cannot be reached
            reason = " ".join(str(error).split()).rstrip(".")[:160]
    raise UserError(
        f"{model} must hold a tokenizer that transformers' AutoTokenizer loads, but it does not ({reason}); copy the files of its "
        "tokenizer beside the model, or name another with ",
        Setting("task.tokenizer", "FOLDER"),
        ".",
    )


def _missing() -> UserError:
    return UserError("Texts for a net of the Hugging Face hub need transformers: pip install 'umix[hf]'.")
