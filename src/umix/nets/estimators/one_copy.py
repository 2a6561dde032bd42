"""The inputs of a large HistGradientBoostingClassifier, prepared with one copy instead of three."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_LARGE = 2**22  # rows × columns from which on it is worth it


@contextmanager
def one_copy(model: Any, x: Any) -> Iterator[None]:
    """Inside the block a fit of ``model`` to ``x``, an array with columns of codes, needs less memory; its result is the same.

    scikit-learn's own preparation copies the codes, the numbers and then both together, in double precision. Here it is fitted to
    a few rows that have every code, and the matrix that it would make of all rows is filled column by column.
    """
    if not isinstance(x, np.ndarray) or x.size < _LARGE or model.categorical_features is None:
        yield
        return
    prepare = model._preprocess_X

    def lean(rows: np.ndarray, *, reset: bool) -> Any:
        if not reset:
            return prepare(rows, reset=False)
        codes = np.flatnonzero(model.categorical_features)
        some = np.unique(np.concatenate([np.unique(rows[:, place], return_index=True)[1] for place in codes]))
        _, known = prepare(rows[some], reset=True)
        values = model._preprocessor.named_transformers_["encoder"].categories_
        prepared = np.empty(rows.shape)  # in C order: the library takes rows out of it, and would copy it otherwise
        for column, (place, has) in enumerate(zip(codes, values, strict=True)):
            gaps = np.isnan(rows[:, place])
            prepared[:, column] = np.searchsorted(has[~np.isnan(has)], rows[:, place])
            prepared[gaps, column] = np.nan
        for column, place in enumerate(np.setdiff1d(np.arange(rows.shape[1]), codes), start=len(codes)):
            prepared[:, column] = rows[:, place]
        return prepared, known

    model._preprocess_X = lean
    try:
        yield
    finally:
        del model._preprocess_X
