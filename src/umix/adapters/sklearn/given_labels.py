"""Labels as they are given: every row has one, and they name classes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_y, _num_samples

from umix.adapters.given_groups import as_array, is_missing
from umix.errors import UserError

_CLASSES = ("binary", "multiclass")  # what scikit-learn calls labels that name a class


def checked_labels(given: Any, x: Any, *, owner: Any) -> NDArray[Any]:
    """The label of every row of ``x``, [n]; raises where one is missing."""
    if given is None:
        raise UserError(
            f"{type(owner).__name__} requires y to be passed, but the target y is None; give a label for every row."
        )
    missing = is_missing(as_array(given))
    if missing.any():
        raise UserError(
            f"y must have a label in every row, but it is missing in {int(missing.sum())} of {missing.size}, the first of them row "
            f"{int(missing.ravel().argmax())} (counted from 0); leave those rows out."
        )
    labels: NDArray[Any] = _check_y(given, estimator=owner)
    if len(labels) != (n := _num_samples(x)):
        raise UserError(f"y must have a label for each of the {n} rows of X, got {len(labels)}.")
    return labels


def classes_of(y: NDArray[Any], weight: NDArray[Any] | None) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The labels of rows that count, sorted, and the class of every row, [n]; any for rows that do not count."""
    if (kind := _kind(y)) not in _CLASSES:
        raise UserError(
            f"y must name a class in every row, as a text, a whole number, or true or false, got other values (Unknown label "
            f"type: {kind}); cut a quantity into a few ranges, and write labels of several types as texts."
        )
    counted = y if weight is None else y[weight > 0]
    classes = np.unique(counted)
    if len(classes) < 2:
        raise UserError(
            f"The labels must have at least two classes, got {len(classes)} class in {len(counted)} rows that count."
        )
    return classes, np.searchsorted(classes, y).clip(max=len(classes) - 1)


def _kind(y: NDArray[Any]) -> str:
    """What scikit-learn calls labels of this kind."""
    try:
        return str(type_of_target(y, input_name="y"))
    except TypeError:  # texts among numbers
        return "unknown"
