"""Groups of label × values, from values as people give them: of one attribute or several, in an array, a frame or a dict."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from umix.data.arrays import columns
from umix.data.groups import Groups
from umix.data.rows.known_rows import column_groups
from umix.data.rows.role_columns import Rows
from umix.data.rows.table_file import as_frame, is_frame, is_series
from umix.errors import UserError

if TYPE_CHECKING:
    import polars


def cells(y: Rows, classes: tuple[str, ...], given: Any) -> Groups:
    """Groups of label × values, as tables have them; a row with a missing value has no group."""
    by = _attribute_columns(given, n=len(y), name="groups")
    return column_groups(y, classes, by.get_columns(), label="label")


def _attribute_columns(given: Any, *, n: int, name: str) -> "polars.DataFrame":
    """The attributes as columns, one value for each of ``n`` rows; one that is given without a name is called ``name``."""
    if isinstance(given, Mapping):
        if not given:
            raise UserError("groups must have a column, got an empty dict; leave groups out.")
        return columns({str(key): _plain(as_array(values)) for key, values in given.items()}, n=n)
    if is_series(given):
        given = given.to_frame(name if given.name in (None, "") else str(given.name))
    if is_frame(given):
        frame = as_frame(given)
        if len(frame) != n or not frame.width:
            raise UserError(
                f"groups must have a column or more, with a value for each of the {n} rows of the inputs, got "
                f"{frame.width} × {len(frame)}."
            )
        return frame
    values = _plain(as_array(given))
    if values.ndim == 2 and values.shape[1] > 1:
        return columns({f"{name}_{place}": values[:, place] for place in range(values.shape[1])}, n=n)
    return columns({name: values}, n=n)


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    """Objects as texts, missing ones as None; other values as they are."""
    if values.dtype.kind != "O":
        return values
    texts = [None if gone else str(value) for value, gone in zip(values.flat, is_missing(values).flat, strict=True)]
    return np.array(texts, dtype=object).reshape(values.shape)


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
