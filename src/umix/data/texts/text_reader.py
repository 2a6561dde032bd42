"""From texts to inputs: token ids for nets that read them, word features for other nets; the same for new texts.

Features of texts without a pretrained net are TF-IDF of words and word pairs, computed as in scikit-learn, and reduced to a few
hundred numbers: a truncated singular value decomposition, fitted on training texts, keeps the 300 directions that tell texts apart
best.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torch import Tensor

from umix.data.rows.reader import NewInputs, Note, Reader
from umix.data.rows.role_columns import Rows
from umix.data.rows.table_blocks import table_blocks
from umix.data.rows.table_file import as_frame
from umix.data.texts.tokenizer import TokenIds, Tokenizer
from umix.errors import Setting, UserError
from umix.run_folder import TEXT_INPUTS
from umix.store import parsed, read_tensors, reading, write_tensors

if TYPE_CHECKING:
    import polars

_KIND = "texts preprocessing"
WIDTH = 300
_TERMS, _FIT_ROWS = 20_000, 50_000  # largest number of terms; number of texts that the decomposition is fitted on
_WORD = r"(?u)\w+|[^\w\s]"  # signs and emoji are words too
Floats = NDArray[np.float32]


@final
class WordFeatures:
    """What was learned from training texts: the terms, their weights ``idf``, directions [width, terms], and one scale."""

    def __init__(self, terms: Sequence[str], idf: Floats, directions: Floats | None, scale: float) -> None:
        self.terms, self.idf, self.directions, self.scale = list(terms), idf, directions, scale
        self._counter = _vectorizer(vocabulary=self.terms)
        self._counter.idf_ = idf.astype(np.float64)

    @classmethod
    def fit(cls, texts: Sequence[str], column: str) -> "WordFeatures":
        """The word features fitted on these training texts; ``column`` names them in errors."""
        from sklearn.decomposition import TruncatedSVD

        found = None
        for least in (2, 1):  # terms of a single text are left out, unless there are no others
            try:
                found = _vectorizer(min_df=least, max_features=_TERMS).fit(texts)
                break
            except ValueError:
                continue
        if found is None:
            raise UserError(f"The texts {column!r} must hold words, but those of the training rows are all empty.")
        terms, idf = found.get_feature_names_out().tolist(), found.idf_.astype(np.float32)
        counts = found.transform(texts[:: -(-len(texts) // _FIT_ROWS)])
        width = min(WIDTH, len(terms) - 1, counts.shape[0] - 1)
        directions = None
        if 1 < width < len(terms) - 1:
            with threadpool_limits(1):  # sums must not depend on the number of threads
                components = TruncatedSVD(width, random_state=0).fit(counts).components_
                directions = np.ascontiguousarray(components, dtype=np.float32)
        fitted = cls(terms, idf, directions, 1.0)
        spread = float(fitted.transform(texts[: 10 * WIDTH]).std())
        return cls(terms, idf, directions, 1 / spread if spread > 0 else 1.0)

    @property
    def width(self) -> int:
        """How many numbers a text becomes."""
        return len(self.terms) if self.directions is None else len(self.directions)

    def transform(self, texts: Sequence[str]) -> Floats:
        """The features of ``texts``, [n, width]; words that did not occur in training are ignored."""
        counts = self._counter.transform(texts)
        with threadpool_limits(1):
            x: Floats = counts.toarray() if self.directions is None else counts @ self.directions.T
        return np.ascontiguousarray(x * np.float32(self.scale), dtype=np.float32)


def _vectorizer(**options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(ngram_range=(1, 2), token_pattern=_WORD, sublinear_tf=True, dtype=np.float32, **options)


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
        state: dict[str, Any] = {"column": self.column, "id": self.id}
        tensors = {}
        if isinstance(self._how, Tokenizer):
            state |= {"tokenizer": self._how.written, "pad": self._how.pad, "length": self._how.length}
        else:
            state |= {"terms": self._how.terms, "scale": self._how.scale}
            tensors["idf"] = torch.from_numpy(self._how.idf)
            if self._how.directions is not None:
                tensors["directions"] = torch.from_numpy(self._how.directions)
        write_tensors(directory / TEXT_INPUTS, tensors, {"kind": _KIND, "known": json.dumps(state)})

    @classmethod
    def load(cls, directory: Path) -> Self:
        path = directory / TEXT_INPUTS
        tensors, metadata = read_tensors(path, kind=_KIND)
        how: Tokenizer | WordFeatures
        with reading(path, _KIND):
            state = parsed(metadata["known"])
            if "tokenizer" in state:
                how = Tokenizer(state["tokenizer"], pad=state["pad"], length=state["length"])
            else:
                directions = tensors["directions"].numpy() if "directions" in tensors else None
                how = WordFeatures(state["terms"], tensors["idf"].numpy(), directions, state["scale"])
            return cls(state["column"], state["id"], how)


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
