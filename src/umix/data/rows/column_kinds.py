"""The kind of each input column: number, text or moment in time."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from umix.errors import Setting, UserError

if TYPE_CHECKING:
    import polars

Kind = Literal["number", "text", "moment"]
#: Texts with more values than these are summed up in numbers that keep similar texts near each other.
FEW_VALUES = 100
_TOO_WIDE = ("Int128", "UInt128")  # for NumPy; by name, because older versions of polars have only one of them
#: Texts that mean a missing value, beside those of nothing but white space; they are skrub's.
GAPS = (
    *("?", "...", "null", "NULL", "nan", "NaN", "NA", "N/A", "n/a", "#NA", "#N/A", "<NA>", "none", "None"),
    *("-nan", "-NaN", "#N/A N/A", "1.#QNAN", "-1.#QNAN", "1.#IND", "-1.#IND"),
)
_FIRST = 100


def kind_of(column: "polars.Series") -> Kind:
    """The kind that the column is read as; raises for lists, structures and bytes.

    >>> import polars
    >>> kind_of(polars.Series([True, False])), kind_of(polars.Series(["a"]))
    ('number', 'text')
    """
    import polars

    kind = column.dtype
    if kind.is_numeric() or kind in (polars.Boolean, polars.Duration, polars.Time, polars.Null):
        return "number"
    if kind in (polars.String, polars.Categorical, polars.Enum):
        return "text"
    if kind in (polars.Date, polars.Datetime):
        return "moment"
    raise UserError(
        f"The input {column.name!r} must hold numbers, texts or dates, got {kind}; leave it out with ",
        Setting("drop", column.name),
        ".",
    )


def is_plain(kind: "polars.DataType") -> bool:
    """Whether a column of this type can be read as a kind: it holds no lists, structures, bytes or objects."""
    import polars

    return not kind.is_nested() and kind not in (polars.Binary, polars.Object)


def is_text(column: "polars.Series") -> bool:
    """Whether the column holds texts, in whichever of polars' three types."""
    import polars

    return column.dtype in (polars.String, polars.Categorical, polars.Enum)


def is_missing(column: "polars.Series") -> "polars.Series":
    """Which values are missing: null, and in texts what people write for it.

    >>> import polars
    >>> is_missing(polars.Series(["a", "", "?", None])).to_list()
    [False, True, True, True]
    """
    import polars

    if not is_text(column):
        return column.is_null()
    text = column.cast(polars.String)
    return (text.is_in(GAPS) | (text.str.strip_chars() == "")).fill_null(True)


def reads_as(texts: "polars.Series") -> Kind:
    """What the distinct texts of a column all are, none of which is missing.

    >>> import polars
    >>> reads_as(polars.Series(["1", " 2.5"])), reads_as(polars.Series(["2024-02-29"])), reads_as(polars.Series(["1", "b"]))
    ('number', 'moment', 'text')
    """
    for kind in ("number", "moment"):
        for some in (texts.head(_FIRST), texts):  # most columns of texts show it in the first values
            if not len(some) or as_kind(some, kind).null_count():
                break
        else:
            return kind
    return "text"


def holds_few_texts(column: "polars.Series") -> bool:
    """Whether the column holds texts of few values that are neither all numbers nor all dates; missing ones are not counted."""
    import polars

    if column.dtype != polars.String:
        return False
    values = column.unique()
    values = values.filter(~is_missing(values))
    return 0 < len(values) <= FEW_VALUES and reads_as(values) == "text"


def cast(frame: "polars.DataFrame", kinds: Mapping[str, str]) -> "polars.DataFrame":
    """The columns named in ``kinds`` as these kinds; values and columns that are missing or do not fit become null."""
    import polars

    there = set(frame.columns)

    def found(name: str) -> "polars.Series":
        if name in there:
            return frame[name]
        return polars.Series(name, [], dtype=polars.String).extend_constant(None, len(frame))

    return polars.DataFrame([as_kind(found(name), kind) for name, kind in kinds.items()])


def as_kind(column: "polars.Series", kind: str) -> "polars.Series":
    """The column read as this kind; what does not fit becomes null."""
    import polars

    if kind == "text":
        return _cast(column, polars.String())
    if kind == "moment":
        return _moment(column)
    if is_text(column):
        return column.cast(polars.String).str.strip_chars().cast(polars.Float64, strict=False)
    if column.dtype.is_float() or (column.dtype.is_integer() and str(column.dtype) not in _TOO_WIDE):
        return column
    if column.dtype in (polars.Duration, polars.Time):
        return column.cast(polars.Duration("us")).dt.total_microseconds() / 1e6
    return column.cast(polars.Float64, strict=False)


def _moment(column: "polars.Series") -> "polars.Series":
    import polars

    if is_text(column):
        try:
            column = column.cast(polars.String).str.to_datetime(strict=False)
        except polars.exceptions.ComputeError:  # no value looks like a date
            return polars.Series(column.name, [], dtype=polars.Datetime("us")).extend_constant(None, len(column))
    if isinstance(column.dtype, polars.Datetime) and column.dtype.time_zone:
        column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return _cast(column, polars.Datetime("us"))


def _cast(column: "polars.Series", kind: "polars.DataType") -> "polars.Series":
    """The column as this type of polars, null where a value or its whole type cannot be."""
    import polars

    try:
        return column.cast(kind, strict=False)
    except polars.exceptions.InvalidOperationError:  # such as a duration as a text, or a time of the day as a date
        return polars.Series(column.name, [], dtype=kind).extend_constant(None, len(column))
