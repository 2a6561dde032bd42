"""The class, group, split and weight of each row, read from one column each; a column that does not fit its role raises."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, final

import numpy as np
from numpy.typing import NDArray

from umix.data.rows.column_kinds import as_kind, reads_as
from umix.errors import Setting, UserError

if TYPE_CHECKING:
    import polars

#: A label with more distinct numbers, or more distinct values per row, is taken for a quantity.
MOST_NUMBERS, MOST_DISTINCT = 100, 0.5
#: The names of splits that are understood, and the split they mean.
SPLIT_CODES = {
    **dict.fromkeys(("train", "training", "0"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev", "1"), "val"),
    **dict.fromkeys(("test", "testing", "2"), "test"),
}
#: Those names that are not digits.
SPLIT_WORDS = tuple(name for name in SPLIT_CODES if not name.isdecimal())
Rows = NDArray[np.int64]
#: What a blank in a group column is: a group that is not known, or a value of its own.
Blanks = Literal["unknown", "group"]


def texts(column: "polars.Series") -> "polars.Series":
    """The values as trimmed texts, whole numbers without a point; empty cells, blanks, NaN and ``?`` become null.

    >>> import polars
    >>> texts(polars.Series([1.0, 2.0, None, float("nan")])).to_list()
    ['1', '2', None, None]
    """
    import polars

    if column.dtype.is_float():
        column = column.fill_nan(None)
        if (column.round() == column).all():
            column = column.cast(polars.Int64, strict=False)
    try:
        if column.dtype.is_nested():
            raise polars.exceptions.InvalidOperationError  # a structure would become a text with braces
        text = column.cast(polars.String)
    except polars.exceptions.PolarsError:
        raise UserError(
            f"The column {column.name!r} must hold numbers or texts to be used so, got {column.dtype}."
        ) from None
    if column.dtype in (polars.Categorical, polars.Enum):
        values = column.unique().cast(polars.String)
        if values.equals(_cleaned(values)):
            return text  # not copied twice more, which matters for millions of rows
    return _cleaned(text)


def _cleaned(text: "polars.Series") -> "polars.Series":
    text = text.str.strip_chars()
    return text.set(text.is_in(["", "?"]).fill_null(False), None)


def check_id(column: "polars.Series") -> None:
    """Raise where the values cannot be copied into predictions of every format."""
    import polars

    kind = column.dtype
    if kind.is_nested() or kind in (polars.Binary, polars.Duration, polars.Object):
        raise UserError(f"The id column {column.name!r} must hold numbers, texts or dates, got {kind}.")


def encode_labels(column: "polars.Series") -> tuple[Rows, tuple[str, ...]]:
    """The class of each row, int64 [n], and the names of the classes, sorted."""
    name, text = column.name, texts(column)
    if missing := text.null_count():
        raise UserError(
            f"The label {name!r} must be known in every row, but it is missing in {missing} of {len(text)}; remove those rows."
        )
    codes, classes = _encode(column, text)
    if not classes:
        raise UserError(f"The label {name!r} must be known in some rows, but there are no rows.")
    if len(classes) < 2:
        raise UserError(f"The label {name!r} must have at least two classes, but every row says {classes[0]!r}.")
    numbers = column.dtype.is_numeric() and len(classes) > MOST_NUMBERS
    if numbers or (len(classes) > 2 and len(classes) > MOST_DISTINCT * len(text)):
        raise UserError(
            f"The label {name!r} must name a class, but it has {len(classes)} distinct values in {len(text)} rows, like a "
            "quantity; cut it into a few ranges, or write its classes as texts."
        )
    return codes, classes


@final
@dataclass(frozen=True, eq=False)
class Attribute:
    """Which of the combinations ``values`` each row has, int64 [n], -1 where a column is blank.

    ``by_column`` has of each column the code of every row, -1 where it is blank, and the names of the codes.
    """

    codes: Rows
    values: list[tuple[str, ...]]
    by_column: list[tuple[Rows, list[str]]]

    @property
    def most(self) -> int:
        """How many combinations there are, or values of one column, whichever is more."""
        return max(len(self.values), *(len(values) for _, values in self.by_column))


def encode_attribute(columns: Sequence["polars.Series"], *, blanks: Blanks = "unknown") -> Attribute:
    """Which combination of the columns' values each row has, and the combinations that occur.

    A row with a blank in one of the columns has no combination, -1; with ``blanks="group"`` a blank is a value of its own,
    ``missing``. Values of columns that are not texts are named ``column=value``.
    """
    combined = np.zeros(len(columns[0]), dtype=np.int64)
    unknown_rows = np.zeros(len(columns[0]), dtype=bool)
    by_column = []
    for column in columns:
        text = texts(column)
        codes, values = _encode(column, text.fill_null("missing") if text.null_count() else text)
        if blanks == "unknown" and text.null_count():
            blank = text.is_null().to_numpy()
            unknown_rows |= blank
            occurring = np.unique(codes[~blank])  # a blank is no value
            codes, values = np.where(blank, -1, np.searchsorted(occurring, codes)), tuple(values[c] for c in occurring)
        combined = combined * len(values) + codes
        by_column.append((codes, [named(column, value) for value in values]))
    present = np.unique(combined[~unknown_rows])
    attribute = np.searchsorted(present, combined)
    attribute[unknown_rows] = -1
    names = [values for _, values in by_column]
    places = np.unravel_index(present, [len(values) for values in names])
    cells = [tuple(values[p] for values, p in zip(names, place, strict=True)) for place in zip(*places, strict=True)]
    return Attribute(attribute, cells, by_column)


def named(column: "polars.Series", value: str) -> str:
    """A value as people read it: alone if it is a word, else with its column's name; different values have different names."""
    import polars

    is_word = column.dtype in (polars.String, polars.Categorical, polars.Enum)
    if not is_word or value in ("missing", "0", "1"):
        return f"{column.name}={value}"
    return json.dumps(value) if value.startswith(f"{column.name}=") else value


def _encode(column: "polars.Series", text: "polars.Series") -> tuple[Rows, tuple[str, ...]]:
    """A code per row and the values in order: numbers by size, texts by the alphabet."""
    import polars

    values = text.unique().to_list()
    try:
        names = sorted(values, key=float) if column.dtype.is_numeric() else sorted(values)
    except ValueError:  # "missing" among numbers
        names = sorted(values)
    codes = text.cast(polars.Enum(names)).to_physical().to_numpy().astype(np.int64)
    return codes, tuple(names)


def split_by_column(column: "polars.Series", values: Mapping[str, str] | None = None) -> dict[str, Rows]:
    """The rows of each split that the column names; val may be absent, train and test may not.

    ``values`` says which split each value of the column is; rows with other values are in no split.
    """
    text, meaning = texts(column).str.to_lowercase(), SPLIT_CODES if values is None else values
    known = text.replace_strict(list(meaning), list(meaning.values()), default=None)
    if values is None and known.null_count():
        odd = column.filter(known.is_null())
        raise UserError(
            f"The split column {column.name!r} must say train, val or test (or 0, 1, 2) in every row, but {len(odd)} of "
            f"{len(column)} do not; the first says {odd[0]!r}; say which value is which split with ",
            Setting("split_values", "train=A,val=B,test=C"),
            ", and rows with other values are left out.",
        )
    splits = {
        name: np.flatnonzero((known == name).to_numpy()) for name in ("train", "val", "test") if (known == name).any()
    }
    for name in ("train", "test"):
        if name not in splits:
            called = "" if values is None else f" ({' or '.join(v for v, split in values.items() if split == name)})"
            raise UserError(
                f"The split column {column.name!r} must have rows of train and of test, but {name}{called} has none."
            )
    return splits


def row_weights(column: "polars.Series", train: Rows) -> NDArray[np.float32]:
    """The weights of the rows ``train``, scaled to mean 1 so that they do not change the learning rate; 0 is allowed."""
    import polars

    name, numbers = column.name, column
    if column.dtype == polars.String and (kind := reads_as(column.gather(train))) in ("number", "decimal_comma"):
        numbers = as_kind(column, kind)
    if not numbers.dtype.is_numeric():
        raise UserError(f"The weight {name!r} must be a number in every training row, got {column.dtype}.")
    values = numbers.cast(polars.Float64).to_numpy()[train]
    bad = ~(np.isfinite(values) & (values >= 0))  # a missing value is NaN
    if bad.any():
        row = train[bad.argmax()]
        raise UserError(
            f"The weight {name!r} must be a finite number of at least 0 in every training row, got {column[int(row)]} in row "
            f"{row} (counted from 0); {int(bad.sum())} of {len(values)} are so."
        )
    if not values.any():
        raise UserError(f"The weight {name!r} must be above 0 in some training row, but it is 0 in all.")
    scaled: NDArray[np.float32] = (values / values.mean()).astype(np.float32)
    return scaled
