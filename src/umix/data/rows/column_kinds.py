"""The kind of each column: number, text or moment in time; this is where texts become numbers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from umix.errors import Setting, UserError

if TYPE_CHECKING:
    import polars

#: ``decimal_comma``: a number that is written as a text with a comma before its decimals, such as 89,8 or 1.234,5.
Kind = Literal["number", "decimal_comma", "text", "moment"]
#: What an input is to people; ``constant``: it has one value in training, or none, and is left out.
ColumnType = Literal["number", "category", "date", "text", "constant"]
#: Texts with more values than these are summed up in numbers that keep similar texts near each other.
FEW_VALUES = 100
_TOO_WIDE = ("Int128", "UInt128")  # for NumPy; by name, because older versions of polars have only one of them
#: Texts that mean a missing value, beside those of nothing but white space.
GAPS = (
    *("?", "...", "null", "NULL", "nan", "NaN", "NA", "N/A", "n/a", "#NA", "#N/A", "<NA>", "none", "None"),
    *("-nan", "-NaN", "#N/A N/A", "1.#QNAN", "-1.#QNAN", "1.#IND", "-1.#IND"),
)
_FIRST = 100
# A point groups thousands only in a number with a comma or a second point: 1.234 alone may have a decimal point.
_COMMA_NUMBER = (
    r"^[+-]?(?:(?:[0-9]+|[0-9]{1,3}(?:\s[0-9]{3})+)(?:,[0-9]*)?|,[0-9]+"
    r"|[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]*|[0-9]{1,3}(?:\.[0-9]{3}){2,})(?:[eE][+-]?[0-9]+)?$"
)
_THOUSANDS = r"^\s*[+-]?[1-9][0-9]{0,2},[0-9]{3}\s*$"


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
    """Which values are missing: null, NaN, and in texts what people write for it.

    >>> import polars
    >>> is_missing(polars.Series(["a", "", "?", None])).to_list()
    [False, True, True, True]
    """
    import polars

    if column.dtype.is_float():
        return column.is_null() | column.is_nan().fill_null(False)
    if not is_text(column):
        return column.is_null()
    text = column.cast(polars.String)
    return (text.is_in(GAPS) | (text.str.strip_chars() == "")).fill_null(True)


def reads_as(texts: "polars.Series") -> Kind:
    """What the distinct texts of a column all are, none of which is missing.

    >>> import polars
    >>> reads_as(polars.Series(["1", " 2.5"])), reads_as(polars.Series(["2024-02-29"])), reads_as(polars.Series(["1", "b"]))
    ('number', 'moment', 'text')
    >>> reads_as(polars.Series(["89,8", "1.234,5"]))
    'decimal_comma'
    """
    for kind in ("number", "decimal_comma", "moment"):
        for some in (texts.head(_FIRST), texts):  # most columns of texts show it in the first values
            if not len(some) or as_kind(some, kind).null_count():
                break
        else:
            return "text" if kind == "decimal_comma" and _may_group_thousands(texts) else kind
    return "text"


def _may_group_thousands(texts: "polars.Series") -> bool:
    """Whether the commas in the numbers may stand between thousands: 950 beside 1,234.

    A column of nothing but numbers like 1,234 has a decimal comma: the other reading would make all of them a thousand times as
    large, which changes neither standardised numbers nor the order in which trees divide them.
    """
    comma = texts.str.contains(",", literal=True)
    return not comma.all() and comma.equals(texts.str.contains(_THOUSANDS))


def read_commas(frame: "polars.DataFrame") -> "polars.DataFrame":
    """The frame with the texts that all are numbers with a decimal comma as numbers."""
    import polars

    texts = [column for column in frame.iter_columns() if column.dtype == polars.String]
    decimal = [column for column in texts if reads_as(column.filter(~is_missing(column))) == "decimal_comma"]
    return frame.with_columns(as_kind(column, "decimal_comma") for column in decimal)


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
        text = column.cast(polars.String).str.strip_chars()
        if kind != "decimal_comma":
            return text.cast(polars.Float64, strict=False)
        point = text.str.replace_all(r"[.\s]", "").str.replace(",", ".", literal=True)
        return point.cast(polars.Float64, strict=False).set(~text.str.contains(_COMMA_NUMBER), None)
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
