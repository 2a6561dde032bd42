"""From texts to inputs: token ids for nets that read them, word features for other nets; the same for new texts."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, final

import torch
from pydantic import ConfigDict, Field, TypeAdapter, with_config
from torch import Tensor
from typing_extensions import TypedDict

from umix.data.rows.new_notes import Note
from umix.data.rows.reader import NewInputs, Reader
from umix.data.rows.role_columns import Rows
from umix.data.rows.table_blocks import table_blocks
from umix.data.rows.table_file import as_frame
from umix.data.texts.token_ids import TokenIds
from umix.data.texts.tokenizer import Tokenizer
from umix.data.texts.word_features import WordFeatures
from umix.errors import Setting, UserError
from umix.files import parsed, read_tensors, reading, write_tensors
from umix.run_folder import TEXT_INPUTS
from umix.settings import checked

if TYPE_CHECKING:
    import polars

_KIND = "texts preprocessing"


@final
@with_config(ConfigDict(strict=True))
class _Tokens(TypedDict):
    """What is stored of texts that become token ids."""

    column: str
    id: str | None
    tokenizer: str
    pad: Annotated[int, Field(ge=0, lt=2**31)]
    length: Annotated[int, Field(ge=1, lt=2**31)]


@final
@with_config(ConfigDict(strict=True))
class _Words(TypedDict):
    """What is stored of texts that become features of words, beside the learned numbers."""

    column: str
    id: str | None
    terms: Annotated[list[str], Field(min_length=1)]
    scale: Annotated[float, Field(gt=0, le=1e30)]


_TOKENS, _WORDS = TypeAdapter[Any](_Tokens), TypeAdapter[Any](_Words)


@final
class TextReader(Reader):
    """How the texts of ``column`` become inputs, by a tokenizer or by features of words; ``id`` names the rows."""

    def __init__(self, column: str, id: str | None, how: Tokenizer | WordFeatures) -> None:
        self.column, self.id, self._how = column, id, how

    @property
    def input_shape(self) -> tuple[int, ...] | None:
        return None if isinstance(self._how, Tokenizer) else (self._how.width,)

    @property
    def padding(self) -> int | None:
        """The id that fills up token ids; None where texts become features of words."""
        return self._how.pad if isinstance(self._how, Tokenizer) else None

    @property
    def longest(self) -> int | None:
        """The most token ids of a text; None where texts become features of words."""
        return self._how.length if isinstance(self._how, Tokenizer) else None

    def encode(self, texts: Sequence[str]) -> tuple[Tensor | TokenIds, int]:
        """The inputs of ``texts``, and how many texts had to be cut."""
        if isinstance(self._how, Tokenizer):
            return self._how.encode(texts)
        return torch.from_numpy(self._how.transform(texts)), 0

    def inputs(self, new: Any) -> NewInputs:
        """The rows of a table (a path, a polars or a pandas frame) with the column of texts; others are ignored."""
        return self._block(as_frame(new))

    def blocks(self, new: Any) -> Iterator[NewInputs]:
        """The rows of a table, a block after the other; ``new`` may also be an open file with CSV."""
        return map(self._block, self.frames(new))

    def frames(self, new: Any) -> "Iterator[polars.DataFrame]":
        """The rows as they are in the table, a block after the other; in CSV, texts are read as they are written."""
        return table_blocks(new, texts={self.column}, copied=self.id)

    def _block(self, frame: "polars.DataFrame") -> NewInputs:
        if self.column not in frame.columns:
            raise UserError(
                f"The table must have the column {self.column!r} that the model was trained with; it has not."
            )
        if not len(frame):
            raise UserError("The table must have rows, but it is empty.")
        texts, empty = read_texts(frame[self.column])
        x, cut = self.encode(texts)
        notes: list[Note | str] = [empty, *cut_note(cut, len(texts), self._how)]
        ids = {self.id: frame[self.id]} if self.id in frame.columns else {}
        if self.id and not ids:
            notes.append(f"The table has no id column {self.id!r}: predictions are in the order of its rows.")
        return NewInputs(x, ids=ids, notes=tuple(notes))

    def save(self, directory: Path) -> None:
        known: dict[str, Any] = {"column": self.column, "id": self.id}
        tensors = {}
        if isinstance(self._how, Tokenizer):
            known |= {"tokenizer": self._how.written, "pad": self._how.pad, "length": self._how.length}
        else:
            known |= {"terms": self._how.terms, "scale": self._how.scale}
            tensors["idf"] = torch.from_numpy(self._how.idf)
            if self._how.directions is not None:
                tensors["directions"] = torch.from_numpy(self._how.directions)
        write_tensors(directory / TEXT_INPUTS, tensors, {"kind": _KIND, "known": json.dumps(known)})

    @classmethod
    def load(cls, directory: Path) -> Self:
        path = directory / TEXT_INPUTS
        tensors, metadata = read_tensors(path, kind=_KIND)
        with reading(path, _KIND):
            stored = parsed(metadata["known"])
        known = checked(_TOKENS if isinstance(stored, dict) and "tokenizer" in stored else _WORDS, stored, path)
        how: Tokenizer | WordFeatures
        if "tokenizer" in known:
            how = Tokenizer(known["tokenizer"], pad=known["pad"], length=known["length"])
            return cls(known["column"], known["id"], how)
        terms, directions = known["terms"], tensors.get("directions")
        with reading(path, _KIND):
            how = WordFeatures(
                terms, tensors["idf"].numpy(), None if directions is None else directions.numpy(), known["scale"]
            )
        return cls(known["column"], known["id"], how)


def text_inputs(
    texts: Sequence[str], rows: Mapping[str, Rows], *, column: str, id: str | None, tokenizer: str | None, length: int
) -> tuple[dict[str, Tensor | TokenIds], TextReader, list[Note]]:
    """The inputs of every split, the reader of new texts, and notes; without a ``tokenizer`` inputs are word features."""
    parts = {name: [texts[row] for row in index.tolist()] for name, index in rows.items()}
    how = Tokenizer.of(tokenizer, length=length) if tokenizer else WordFeatures.fit(parts["train"], column)
    reader = TextReader(column, id, how)
    encoded = {name: reader.encode(part) for name, part in parts.items()}
    cut = sum(n for _, n in encoded.values())
    return {name: x for name, (x, _) in encoded.items()}, reader, cut_note(cut, len(texts), how)


def read_texts(column: "polars.Series") -> tuple[list[str], Note]:
    """The texts of a column, and how many are empty; a missing one is an empty text."""
    import polars

    if column.dtype not in (polars.String, polars.Categorical, polars.Enum):
        raise UserError(
            f"The text column {column.name!r} must hold texts, got {column.dtype}; leave ",
            Setting("text"),
            " out to use it as a number.",
        )
    texts = column.cast(polars.String).fill_null("").to_list()
    empty = sum(not text.strip() for text in texts)
    return texts, Note("{count} of {of} texts are empty or missing and count as empty.", empty, len(texts))


def cut_note(cut: int, n: int, how: Tokenizer | WordFeatures) -> list[Note]:
    """How many texts were too long; nothing where the length has no limit."""
    if not isinstance(how, Tokenizer):
        return []
    return [
        Note(f"{{count}} of {{of}} texts ({{share}}) are longer than {how.length} tokens and were cut there.", cut, n)
    ]
