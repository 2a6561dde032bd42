"""Frames of pandas or polars as inputs of a net: those of numbers alone as a matrix, others as ``umix run`` takes a table.

The border: a frame is numbers alone where every column holds numbers, or true and false, and no value is missing.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from umix.data.rows.column_kinds import cast
from umix.data.rows.known_rows import KnownRows
from umix.data.rows.table_file import as_frame, is_frame, is_pandas
from umix.data.tables.preprocessing import TablePreprocessing
from umix.errors import Setting, UserError

if TYPE_CHECKING:
    import polars


def is_table(x: Any) -> bool:
    """Whether ``x`` is a frame that holds something else than numbers, or a missing value."""
    if not is_frame(x) or 0 in x.shape:
        return False
    return _is_pandas_table(x) if is_pandas(x) else _is_polars_table(x)


def fitted_table(x: Any, known: KnownRows) -> tuple[TablePreprocessing, dict[str, NDArray[np.float32]]]:
    """The preprocessing of the training rows of a frame, and the matrix of every split, [rows, width]."""
    frame = as_frame(x)
    try:
        reader, train = TablePreprocessing.fit(frame[known.rows["train"]], label="", id=None)
    except UserError as error:
        raise UserError(error.message(_spelled)) from None
    matrices = {"train": train, "val": reader.transform(frame[known.rows["val"]])}
    return reader, {**matrices, "test": np.zeros((0, train.shape[1]), dtype=np.float32)}


def require_frame(x: Any, reader: TablePreprocessing) -> None:
    """Raise where ``x`` is no frame, whose columns ``reader`` would have to know."""
    if not is_frame(x):
        shown = ", ".join(reader.columns[:3]) + (", …" if len(reader.columns) > 3 else "")
        raise UserError(
            f"X must be a frame with the columns of fit ({shown}), because some of them held no numbers or had missing values, "
            f"got {type(x).__name__}."
        )


def table_matrix(reader: TablePreprocessing, x: Any) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    """The matrix of a frame, [n, width], and what is to be said of values that training did not have."""
    inputs = reader.inputs(as_frame(x))
    matrix: NDArray[np.float32] = np.asarray(inputs.x)
    return matrix, tuple(map(str, inputs.notes))


def numbers_with_gaps(x: Any) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """The columns of a frame as numbers, [n, columns], NaN where there is none, and what is to be said of values that are none."""
    import polars

    frame = as_frame(x)
    numbers = cast(frame, dict.fromkeys(frame.columns, "number")).cast(polars.Float64, strict=False)
    lost = {name: int((numbers[name].is_null() & ~frame[name].is_null()).sum()) for name in frame.columns}
    notes = (
        f"Values of {name!r} that are no numbers count as missing: {count} of {len(frame)}."
        for name, count in lost.items()
        if count
    )
    matrix: NDArray[np.float64] = numbers.to_numpy(writable=True)
    matrix[np.isinf(matrix)] = np.nan
    return matrix, tuple(notes)


def _is_pandas_table(x: Any) -> bool:
    from pandas.api.types import is_numeric_dtype

    columns = x.infer_objects()  # numbers may be there as objects
    return not all(is_numeric_dtype(kind) for kind in columns.dtypes) or bool(x.isna().any(axis=None))


def _is_polars_table(x: "polars.DataFrame") -> bool:
    import polars

    if not all(kind.is_numeric() or kind == polars.Boolean for kind in x.dtypes):
        return True
    return any(
        column.null_count() or (column.dtype.is_float() and column.is_nan().any()) for column in x.iter_columns()
    )


def _spelled(setting: Setting) -> str:
    """How a setting of ``umix run`` is written with a frame."""
    return f"X.drop(columns={setting.value!r})" if setting.name == "drop" else str(setting)
