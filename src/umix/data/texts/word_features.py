"""Features of texts without a pretrained net: TF-IDF of words and word pairs, reduced to a few hundred numbers.

TF-IDF is computed as in scikit-learn. A truncated singular value decomposition, fitted on training texts, keeps the 300
directions that tell texts apart best.
"""

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from umix.errors import UserError

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
