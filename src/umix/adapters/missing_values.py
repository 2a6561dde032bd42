"""Which values of an array are missing: None, NaN, NaT and pandas' NA."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def as_array(given: Any) -> NDArray[Any]:
    """``given`` as an array; a missing value among texts of a list stays one instead of becoming the text ``nan``.

    >>> as_array(["a", float("nan")])
    array(['a', nan], dtype=object)
    """
    if isinstance(given, Tensor):
        plain = given.detach().cpu()
        return (plain.float() if plain.dtype == torch.bfloat16 else plain).numpy()  # NumPy has no bfloat16
    values = np.asarray(given)
    return np.asarray(given, dtype=object) if values.dtype.kind in "US" and isinstance(given, list | tuple) else values


def is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each value is missing, in the shape of ``values``.

    >>> is_missing(np.array(["a", None, float("nan")], dtype=object))
    array([False,  True,  True])
    """
    if values.dtype.kind == "O":
        return np.array([_is_missing(value) for value in values.ravel()], dtype=bool).reshape(values.shape)
    if values.dtype.kind in "fcmM":
        missing: NDArray[np.bool_] = values != values
        return missing
    return np.zeros(values.shape, dtype=bool)


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas' NA is neither equal to itself nor unequal
        return True
    except ValueError:  # an array or a list
        return False
