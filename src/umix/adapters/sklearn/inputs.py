"""What a fit is given: rows ``X``, labels ``y``, groups, weights and a random state, checked, divided and turned into a task.

A net takes dense numbers. A sparse matrix is unpacked: all of it in float32, 4 bytes a value, while a net is trained, and some
thousand rows at a time when it predicts. Columns are centred, as those of a dense matrix are: the same rows give the same net,
whether they come sparse or dense. A frame of pandas or polars is as good as a matrix where every column holds numbers, or true and
false, and no value is missing; else it is read as ``umix run`` reads a table.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.preprocessing import StandardScaler
from sklearn.utils import assert_all_finite, check_array, check_random_state, column_or_1d
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_non_negative

from umix.adapters.given_groups import as_array, cells, is_missing
from umix.core.streams import stream
from umix.core.subsets import stratified_split
from umix.data.rows.column_kinds import cast
from umix.data.rows.known_rows import KnownRows, stratum_of
from umix.data.rows.role_columns import Rows
from umix.data.rows.table_file import as_frame, is_frame, is_pandas
from umix.data.tables.preprocessing import TablePreprocessing
from umix.data.task import Task
from umix.errors import Setting, UserError
from umix.methods.method import Method
from umix.methods.registry import METHODS

if TYPE_CHECKING:
    import polars

Floats = NDArray[np.floating[Any]]
_FARTHEST = 10.0  # deviations at which inputs are cut, as in tables
_AT_ONCE = 8192  # rows that are unpacked and standardised at once
_CLASSES = ("binary", "multiclass")  # what scikit-learn calls labels that name a class


def seed_of(random_state: Any) -> int:
    """A whole number as it is; from a RandomState, or numpy's global one for None, the next draw: another one in every fit."""
    if random_state is None or random_state is np.random or isinstance(random_state, np.random.RandomState):
        return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    if isinstance(random_state, int | np.integer) and 0 <= random_state < 2**32:
        return int(random_state)
    raise UserError(
        f"random_state must be None, a whole number in [0, {2**32}) or a numpy.random.RandomState, got {random_state!r}."
    )


def n_rows(x: Any) -> int:
    """The number of rows of an array, a frame, a sparse matrix or a list."""
    return int(x.shape[0]) if hasattr(x, "shape") else len(x)


def checked_rows(
    x: Any, y: Any, groups: Any, sample_weight: Any, *, recipe: Method, owner: Any, val_share: float, seed: int
) -> tuple[NDArray[Any], Floats | None, KnownRows]:
    """The classes, sorted, what each row of ``x`` counts for as it is given, and the rows divided for training and validation."""
    labels = _checked_labels(y, x, owner=owner)
    weight = _checked_weight(sample_weight, x, recipe)
    classes, codes = _classes_of(labels, weight)
    names = tuple(str(name) for name in classes)
    return classes, weight, divide_rows(codes, names, groups=groups, weight=weight, val_share=val_share, seed=seed)


def _checked_labels(given: Any, x: Any, *, owner: Any) -> NDArray[Any]:
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
    labels: NDArray[Any] = column_or_1d(given, warn=True)
    assert_all_finite(labels, input_name="y")
    if len(labels) != (n := n_rows(x)):
        raise UserError(f"y must have a label for each of the {n} rows of X, got {len(labels)}.")
    return labels


def _classes_of(y: NDArray[Any], weight: NDArray[Any] | None) -> tuple[NDArray[Any], NDArray[np.int64]]:
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


def _checked_weight(given: ArrayLike | None, x: Any, recipe: Method) -> Floats | None:
    """What each row of ``x`` counts for, as it is given, float64 [n]; raises where ``recipe`` takes no weights."""
    if given is None:
        return None
    if not recipe.takes_weights:
        able = ", ".join(name for name, kind in METHODS.items() if kind.takes_weights)
        raise UserError(
            f"sample_weight must be left out for method={recipe.name!r}: a row of weight 2 cannot count as two in its risk; "
            f"{able} can do it."
        )
    weight: Floats = check_array(given, dtype=np.float64, ensure_2d=False, input_name="sample_weight")
    if weight.shape != (n := n_rows(x),):
        raise UserError(f"sample_weight must have a number for each of the {n} rows of X, got {list(weight.shape)}.")
    check_non_negative(weight, "sample_weight")
    if not weight.any():
        raise UserError("Sample weights must contain at least one non-zero number, but all are 0; leave them out.")
    return weight


def divide_rows(
    y: Rows, classes: tuple[str, ...], *, groups: Any, weight: Floats | None, val_share: float, seed: int
) -> KnownRows:
    """The rows divided at random, stratified by class, and by group where ``groups`` gives each row a value.

    Rows of ``weight`` 0 are in no split. Equal weights are the same as none.
    """
    if not isinstance(val_share, int | float) or not 0 < val_share < 1:
        raise UserError(f"val_share must be a number in (0, 1), got {val_share!r}.")
    group_cells = None if groups is None else cells(y, classes, groups)
    used = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
    stratum = y if group_cells is None else stratum_of(group_cells, y)
    train, val = stratified_split(stratum[used], share=1 - val_share, rng=stream(seed, "data", "rows/split"))
    if not len(val):
        kind = "class" if group_cells is None else "group"
        raise UserError(
            f"Some {kind} must have two rows, one to train on and one to validate with, but of {len(used)} rows no {kind} has two."
        )
    rows = {"train": used[train], "val": used[val], "test": np.zeros(0, dtype=np.int64)}
    return KnownRows(torch.from_numpy(y), classes, group_cells, rows, _counts(weight, rows["train"]))


def undivided(known: KnownRows, weight: Floats | None) -> KnownRows:
    """The rows of ``known``, all of which train; those that were held out validate too."""
    used = np.sort(np.concatenate([known.rows["train"], known.rows["val"]]))
    return replace(known, rows={**known.rows, "train": used}, weight=_counts(weight, used))


def _counts(weight: Floats | None, rows: Rows) -> torch.Tensor | None:
    """What each of ``rows`` counts for, of mean 1; None where all count the same."""
    if weight is None or (weight[weight > 0] == weight[rows[0]]).all():
        return None
    weights = weight[rows]
    return torch.from_numpy((weights / weights.mean()).astype(np.float32))


def task_of(known: KnownRows, x: Mapping[str, NDArray[Any]]) -> Task:
    """The task of the inputs ``x`` [rows, ...] of the training and validation rows; its test split is empty."""
    parts = {**x, "test": x["train"][:0]}
    splits = {name: known.split(name, torch.from_numpy(part)) for name, part in parts.items()}
    return Task("rows", splits, known.classes)


def row_numbers(known: KnownRows) -> dict[str, NDArray[np.int64]]:
    """The inputs of a task that stand for the given rows, [rows, 1], where an estimator is given these as they are."""
    return {name: known.rows[name][:, None].copy() for name in ("train", "val")}


def standardised_numbers(x: Any, known: KnownRows, weight: Floats | None) -> tuple[StandardScaler, dict[str, Floats]]:
    """The mean and deviation of every column in the training rows, which count by ``weight``, and the rows of both splits."""
    train = known.rows["train"]
    counts = None if weight is None or known.weight is None else weight[train]
    if sparse.issparse(x):
        scaler = StandardScaler(with_mean=False).fit(x[train].astype(np.float64), sample_weight=counts)
        scaler.set_params(with_mean=True)  # rows are dense when they are transformed
    else:
        scaler = StandardScaler().fit(x[train], sample_weight=counts)
    parts: dict[str, Floats] = {}
    for name in ("train", "val"):
        rows = x[known.rows[name]]
        parts[name] = np.empty(rows.shape, dtype=np.float32)
        for begin, block in zip(range(0, rows.shape[0], _AT_ONCE), standardised_blocks(scaler, rows), strict=True):
            parts[name][begin : begin + _AT_ONCE] = block
    return scaler, parts


def standardised_blocks(scaler: StandardScaler, x: Any) -> Iterator[Floats]:
    """All rows of ``x``, standardised, some thousand at a time; a missing value is the mean."""
    for block in row_blocks(x):
        dense: Floats = scaler.transform(block.toarray() if sparse.issparse(block) else block)
        dense.clip(-_FARTHEST, _FARTHEST, out=dense)
        dense[np.isnan(dense)] = 0.0
        yield dense


def row_blocks(x: Any) -> Iterator[Any]:
    """The rows of ``x``, some thousand at a time."""
    return (x[begin : begin + _AT_ONCE] for begin in range(0, x.shape[0], _AT_ONCE))


def is_table(x: Any) -> bool:
    """Whether ``x`` is a frame that holds something else than numbers, or a missing value."""
    if not is_frame(x) or 0 in x.shape:
        return False
    return _is_pandas_table(x) if is_pandas(x) else _is_polars_table(x)


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


def fitted_table(x: Any, known: KnownRows) -> tuple[TablePreprocessing, dict[str, NDArray[np.float32]]]:
    """The preprocessing of the training rows of a frame, and the matrix of both splits, [rows, width]."""
    frame = as_frame(x)
    try:
        reader = replace(TablePreprocessing.fit(frame, known.rows["train"], label="", id=None), one_hot=True)
    except UserError as error:
        raise UserError(error.message(_spelled)) from None
    return reader, {name: reader.transform(frame[known.rows[name]]) for name in ("train", "val")}


def _spelled(setting: Setting) -> str:
    """How a setting of ``umix run`` is written with a frame."""
    return f"X.drop(columns={setting.value!r})" if setting.name == "drop" else str(setting)


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
