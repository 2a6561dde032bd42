"""Rows of numbers as inputs of a net, dense or sparse: standardised, and cut where they are far from all others.

A net takes dense rows, so a sparse matrix is unpacked, block by block: all of it in float32, 4 bytes a value, while a net is
trained, and some thousand rows at a time when it predicts. Columns are centred, as those of a dense matrix are: the same rows give
the same net, whether they come sparse or dense.
"""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from umix.errors import UserError

Floats = NDArray[np.floating[Any]]
_FARTHEST = 10.0  # deviations at which inputs are cut, as in tables
_AT_ONCE = 8192  # rows that are unpacked and standardised at once


def fitted_scaler(x: Any, rows: NDArray[np.int64], weight: Floats | None) -> StandardScaler:
    """The mean and deviation of every column in these ``rows``, which count by ``weight`` [rows]."""
    if not sparse.issparse(x):
        return StandardScaler().fit(x[rows], sample_weight=weight)
    scaler = StandardScaler(with_mean=False).fit(x[rows].astype(np.float64), sample_weight=weight)
    return scaler.set_params(with_mean=True)  # rows are dense when they are transformed


def standardised(scaler: StandardScaler, x: Any, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """These ``rows`` of ``x``, standardised, [rows, columns]."""
    matrix = np.empty((len(rows), x.shape[1]), dtype=np.float32)
    for begin in range(0, len(rows), _AT_ONCE):
        matrix[begin : begin + _AT_ONCE] = _standardised(scaler, x[rows[begin : begin + _AT_ONCE]])
    return matrix


def standardised_blocks(scaler: StandardScaler, x: Any) -> Iterator[Floats]:
    """All rows of ``x``, standardised, some thousand at a time; a missing value is the mean."""
    return (_standardised(scaler, block) for block in row_blocks(x))


def row_blocks(x: Any) -> Iterator[Any]:
    """The rows of ``x``, some thousand at a time."""
    return (x[begin : begin + _AT_ONCE] for begin in range(0, x.shape[0], _AT_ONCE))


def require_memory(x: Any) -> None:
    """Raise where a sparse matrix would not fit into the machine's memory as a dense one."""
    if not sparse.issparse(x) or not hasattr(os, "sysconf"):  # Windows cannot be asked so
        return
    needed, there = 4 * x.shape[0] * x.shape[1], os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there:
        raise UserError(
            f"X must fit into memory as dense float32, because a net takes dense rows, but its {x.shape[0]} × {x.shape[1]} values "
            f"take {needed / 2**30:.0f} GB of {there / 2**30:.0f}; make fewer columns (OneHotEncoder(max_categories=...), "
            "TruncatedSVD), or give an estimator that takes sparse rows."
        )


def _standardised(scaler: StandardScaler, x: Any) -> Floats:
    found: Floats = scaler.transform(x.toarray() if sparse.issparse(x) else x)
    found.clip(-_FARTHEST, _FARTHEST, out=found)
    found[np.isnan(found)] = 0.0
    return found
