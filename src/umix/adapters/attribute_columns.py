"""The values that make groups, as people give them: of one attribute or of several, as an array, a frame or a dict of columns."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from umix.adapters.missing_values import as_array, is_missing
from umix.data.arrays.array_file import columns
from umix.data.rows.table_file import as_frame, is_frame, is_series
from umix.errors import UserError

if TYPE_CHECKING:
    import polars


def attribute_columns(given: Any, *, n: int, name: str) -> "polars.DataFrame":
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
