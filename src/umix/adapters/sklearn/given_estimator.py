"""An estimator of the user's own, which takes rows as they are given: frames, texts, sparse matrices; nothing is converted."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import indexable
from sklearn.utils.validation import _num_samples, validate_data

from umix.data.rows.known_rows import KnownRows
from umix.nets.estimators.estimator import logits_of
from umix.nets.net import Net


def checked_rows(owner: Any, x: Any) -> Any:
    """The rows as they are given; ``owner`` learns the number and names of columns."""
    (x,) = indexable(x)
    validate_data(owner, x, skip_check_array=True)
    return x


def row_numbers(known: KnownRows) -> dict[str, NDArray[np.int64]]:
    """The inputs of a task that stand for the given rows, [rows, 1] in every split."""
    return {name: rows[:, None].copy() for name, rows in known.rows.items()}


def estimator_logits(net: Net, owner: Any, x: Any) -> NDArray[np.float64]:
    """The logits of every row of ``x``, [n, classes]."""
    (x,) = indexable(x)
    if getattr(x, "ndim", 2) > 1:  # of a row that is no table the estimator says itself what is wrong
        validate_data(owner, x, skip_check_array=True, reset=False)
    return logits_of(net, x, n=_num_samples(x))
