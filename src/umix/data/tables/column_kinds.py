"""The kind of each input column: number, text or moment in time."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from umix.errors import Setting, UserError

if TYPE_CHECKING:
    import polars

Kind = Literal["number", "text", "moment"]


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


def cast(frame: "polars.DataFrame", kinds: Mapping[str, str]) -> "polars.DataFrame":
    """The columns named in ``kinds`` as these kinds; values and columns that are missing or do not fit become null."""
    import polars

    empty = polars.Series([None] * len(frame), dtype=polars.String)
    columns = {name: frame[name] if name in frame.columns else empty.alias(name) for name in kinds}
    return polars.DataFrame([_as(columns[name], kind) for name, kind in kinds.items()])


def _as(column: "polars.Series", kind: str) -> "polars.Series":
    import polars

    if kind == "text":
        return column.cast(polars.String, strict=False)
    if kind == "moment":
        return _moment(column)
    if column.dtype == polars.String:
        return column.str.strip_chars().cast(polars.Float64, strict=False)
    if column.dtype.is_float() or (column.dtype.is_integer() and column.dtype not in (polars.Int128, polars.UInt128)):
        return column
    if column.dtype in (polars.Duration, polars.Time):
        return column.cast(polars.Duration("us")).dt.total_microseconds() / 1e6
    return column.cast(polars.Float64, strict=False)


def _moment(column: "polars.Series") -> "polars.Series":
    import polars

    if column.dtype == polars.String:
        try:
            column = column.str.to_datetime(strict=False)
        except polars.exceptions.ComputeError:  # no value looks like a date
            return polars.Series(column.name, [None] * len(column), dtype=polars.Datetime("us"))
    if isinstance(column.dtype, polars.Datetime) and column.dtype.time_zone:
        column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return column.cast(polars.Datetime("us"), strict=False)
