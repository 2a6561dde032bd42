"""How one input column of a table becomes numbers for nets: learned from training rows, kept as plain values.

The rules are those of skrub's TableVectorizer, digit by digit, without importing it: numbers and texts of few values are read by
polars. Dates, and texts of many values, are left to skrub. Numbers with a decimal comma, or with blanks around them, are numbers;
for skrub they would be texts.
"""

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from umix.data.rows.column_kinds import (
    FEW_VALUES,
    GAPS,
    ColumnType,
    Kind,
    as_kind,
    is_missing,
    is_text,
    kind_of,
    reads_as,
)

if TYPE_CHECKING:
    import polars

Numbers = NDArray[np.float32]
Places = NDArray[np.int64]
# A text that skrub takes for a date has a year, a month and a day, or is a year, or a year and a month.
_DATE = r"\d{8}|\d\D+\d+\D+\d|^\d{4}(-\d{1,2})?$"
_LONGEST_DATE = 100  # bytes; what parses dates takes time that grows with the square of a text
_TWO_NUMBERS = r"\d\D+\d"
_LARGEST = 1e300  # mean or deviation
_MONTH = "(?i)jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"


@final
@dataclass(frozen=True)
class InputColumn:
    """How one input column becomes numbers.

    ``read_as`` is what its raw values are cast to; what does not fit is missing. Then ``kind`` decides:

    - ``number``: one float32, standardised with ``mean`` and ``deviation``, cut at ±10, 0 where it is missing or infinite.
    - ``category``: a 0/1 column for each of ``indicators``. ``values`` are the texts of training, sorted; ``gaps`` says that
      missing was a value of its own. Unseen values are 0 in every column.
    - ``skrub``: numbers that skrub makes of dates and of texts of many values, each standardised like a number. ``dates`` says that
      the texts are dates.
    - ``constant``: no number; it has one value in training, or none.

    Where ``marked``, a 0/1 column that says "missing" follows after the numbers of all columns.
    """

    name: str
    read_as: Kind
    kind: Literal["number", "category", "skrub", "constant"]
    values: tuple[str, ...] = ()
    gaps: bool = False
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()
    marked: bool = False
    dates: bool = False

    @property
    def type(self) -> ColumnType:
        """What the column is to people."""
        if self.kind == "skrub":
            return "date" if self.dates or self.read_as == "moment" else "text"
        return self.kind

    @property
    def indicators(self) -> tuple[str | None, ...]:
        """What each 0/1 column of a category stands for, None for missing; of two values only the second has a column.

        >>> InputColumn("sex", "text", "category", values=("f", "m")).indicators
        ('m',)
        """
        all_values = (*self.values, *((None,) if self.gaps else ()))
        return all_values[1:] if len(all_values) == 2 else all_values

    @property
    def width(self) -> int:
        """How many numbers it becomes, without the mark."""
        return len(self.indicators) if self.kind == "category" else len(self.mean)

    def as_json(self) -> dict[str, Any]:
        """The column as a value of JSON."""
        return asdict(self)

    @property
    def fault(self) -> str:
        """What is wrong with a column that was read from a file, in words; empty if nothing is."""
        n = {"number": 1, "category": 0, "constant": 0}.get(self.kind, len(self.mean))
        known = len(self.mean) == len(self.deviation) == n
        if not known or not all(
            abs(m) <= _LARGEST and 0 < d <= _LARGEST for m, d in zip(self.mean, self.deviation, strict=True)
        ):
            return f"mean and deviation of {self.name!r} are not those of a {self.kind} column"
        if len({*self.values, *GAPS}) < len(self.values) + len(GAPS) or bool(self.indicators) != (
            self.kind == "category"
        ):
            return f"the values of {self.name!r} are not those of a {self.kind} column"
        return f"{self.name!r} marks gaps, but has no numbers" if self.marked and not self.mean else ""


def fit_column(column: "polars.Series") -> InputColumn:
    """How the column becomes numbers, learned from its training values; the numbers are not standardised yet."""
    import polars

    name, read_as = column.name, kind_of(column)
    unscaled = InputColumn(name, read_as, "number", mean=(0.0,), deviation=(1.0,))
    if read_as != "text":
        known = as_kind(column, read_as)
        missing = known.is_null() | known.is_nan() if known.dtype.is_float() else known.is_null()
        if missing.all() or (known.n_unique() == 1 and not missing.any()):
            return InputColumn(name, read_as, "constant")
        return InputColumn(name, read_as, "skrub") if read_as == "moment" else unscaled
    distinct = column.unique().cast(polars.String).unique()
    missing = is_missing(distinct)
    values = distinct.filter(~missing).sort()
    gaps = bool(missing.any())
    if not len(values) or (len(values) == 1 and not gaps):
        return InputColumn(name, read_as, "constant")
    kind = reads_as(values)
    if kind == "decimal_comma":
        return replace(unscaled, read_as=kind)
    if _may_be_dates(values) and _are_dates(column):
        return InputColumn(name, read_as, "skrub", dates=True)
    if kind == "number":
        return unscaled
    if len(values) < FEW_VALUES:
        return InputColumn(name, read_as, "category", values=tuple(values.to_list()), gaps=gaps)
    return InputColumn(name, read_as, "skrub")


def numbers(one: InputColumn, column: "polars.Series") -> Numbers:
    """The values of a column of kind number as float32, [n], not standardised; missing and infinite ones are NaN."""
    import polars

    known = as_kind(column, "number" if one.read_as == "text" else one.read_as)
    return finite(known.cast(polars.Float32, strict=False).to_numpy())


def finite(values: Numbers) -> Numbers:
    """The values, NaN where they are infinite."""
    infinite = np.isinf(values)
    return np.where(infinite, np.float32(np.nan), values) if infinite.any() else values


def indicators(one: InputColumn, column: "polars.Series") -> tuple[Places, Numbers, "polars.Series"]:
    """The 0/1 columns of a category, and the values that training had not.

    For each row, [n], the place of the column that may be 1, and its value: 0 where the value has no column.
    """
    import polars

    text = column if is_text(column) else as_kind(column, "text")
    codes = text.cast(polars.Enum((*one.values, *GAPS)), strict=False).to_physical()
    place = {value: i for i, value in enumerate(one.indicators)}
    missing = place.get(None, -1)
    table = np.array([place.get(value, -1) for value in one.values] + [missing] * len(GAPS))
    first, is_one = np.maximum(table, 0), (table >= 0).astype(np.float32)
    if not codes.null_count():
        known = codes.to_numpy()
        return first[known], is_one[known], text.clear()
    known, others = codes.fill_null(0).to_numpy(), codes.is_null()
    rest = text.filter(others)
    blank = is_missing(rest)  # no text, or nothing but white space
    places, ones = first[known], is_one[known]
    places[others.to_numpy()] = max(0, missing)
    ones[others.to_numpy()] = blank.to_numpy() if missing >= 0 else 0.0
    return places, ones, rest.filter(~blank)


def _may_be_dates(values: "polars.Series") -> bool:
    """Whether the texts have enough digits for a date; most columns of texts have not, and skrub need not be asked."""
    if (values.str.len_bytes() > _LONGEST_DATE).any():
        return False
    named = values.str.contains(_TWO_NUMBERS) & values.str.contains(_MONTH)
    return bool((values.str.contains(_DATE) | named).all())


def _are_dates(column: "polars.Series") -> bool:
    """Whether skrub reads the texts of training as dates."""
    import polars
    from skrub import ToDatetime
    from skrub.core import RejectColumn

    from umix.data.tables.skrub_state import steady

    text = column.cast(polars.String)
    try:
        with steady():
            ToDatetime().fit_transform(text.set(is_missing(text), None))
    except RejectColumn:
        return False
    return True
