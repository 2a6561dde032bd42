"""How one column of a table becomes numbers: learned from the training rows, kept as plain values.

- A number, or true and false, is its float32 value; infinite is missing. Whole numbers above 2**24, such as ids and timestamps,
  lose their last digits.
- A text or categorical of at most 100 training values is the place of its value among them, sorted. White space counts: " a"
  and "a" are two values.
- A text whose training values all are numbers, also with a decimal comma, or all are dates, is read as these.
- A date is the days since 1970, and its month, weekday and hour where they differ in training.
- A text of more values is 30 numbers that keep similar texts near each other.

What is missing is NaN. So are values of a category that training did not have, and values that cannot be read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self, final

import numpy as np
from numpy.typing import NDArray

from umix.data.rows.column_kinds import FEW_VALUES, ColumnType, Kind, as_kind, is_missing, is_text, kind_of, reads_as

if TYPE_CHECKING:
    import polars

Numbers = NDArray[np.float32]
#: How many numbers a text of many values becomes.
TEXT_WIDTH = 30
_TEXT_BUCKETS = 2**13  # of hashed pieces of texts
_DATE_PARTS = ("days", "month", "weekday", "hour")
# Ways to write dates that polars does not recognise by itself; the first one that reads all training values is taken.
_DATE_FORMATS = (
    *("%m/%d/%Y", "%m/%d/%Y %H:%M", "%m/%d/%Y %H:%M:%S", "%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S"),
    *("%d %b %Y", "%d %B %Y", "%b %d %Y", "%b %d, %Y", "%B %d, %Y", "%m-%d-%Y"),
)
_FIRST = 100
_MICROSECONDS = 86_400e6  # in a day


@final
@dataclass(frozen=True)
class TableColumn:
    """How one input column becomes ``width`` numbers; 0: it is constant or empty in training, and left out.

    ``values`` are those of a category, ``parts`` and ``date_format`` those of a date (empty: as polars recognises it).
    ``was_text`` says that it held texts in training, and ``gaps`` that some training rows lack it. ``mean`` and ``deviation``
    are those of each number that is a quantity, over the training rows.
    """

    name: str
    kind: Literal["number", "decimal_comma", "category", "date", "text"]
    width: int = 1
    values: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    date_format: str = ""
    was_text: bool = False
    gaps: bool = False
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()

    @property
    def type(self) -> ColumnType:
        """What the column is to people."""
        if not self.width:
            return "constant"
        return "number" if self.kind == "decimal_comma" else self.kind

    @property
    def read_as(self) -> Kind:
        """What its raw values are read as."""
        kinds: dict[str, Kind] = {
            "category": "text",
            "date": "moment",
            "decimal_comma": "decimal_comma",
            "text": "text",
        }
        return kinds.get(self.kind, "number")

    @property
    def categories(self) -> tuple[int, ...]:
        """The number of category values of each number that the column becomes, 0 for a quantity."""
        return (len(self.values),) * self.width


def column_of(column: "polars.Series", *, category: bool = False) -> TableColumn:
    """How ``column``, the training values, becomes numbers; a ``category`` is one even if its values are numbers."""
    import polars

    name, was_text, kind = column.name, is_text(column), kind_of(column)
    if kind == "number" and not category:
        return TableColumn(name, "number", int(_differs(_number(column, kind))))
    if kind == "moment":
        return _date_column(column, "", was_text=False)
    distinct = as_text(column.unique())
    missing = is_missing(distinct)
    values = distinct.filter(~missing).unique().sort()
    if column.dtype == polars.String and not category:
        kind, date_format = reads_as(values), ""
        if kind == "text" and (date_format := _date_format(values)):
            kind = "moment"
        if kind == "moment":
            return _date_column(column, date_format, was_text=True)
        if kind != "text":
            return TableColumn(name, kind, int(_differs(_number(column, kind))), was_text=True)
    if len(values) > FEW_VALUES:
        return TableColumn(name, "text", TEXT_WIDTH, was_text=was_text)
    gaps = bool(missing.any())
    width = int(len(values) + gaps > 1 and len(values) > 0)
    return TableColumn(name, "category", width, tuple(values.to_list()), was_text=was_text, gaps=gaps)


def with_statistics(one: TableColumn, numbers: Sequence[Numbers]) -> TableColumn:
    """``one`` with mean, deviation and gaps of its ``numbers`` in training; a category has none to learn."""
    if one.kind == "category":
        return one
    mean = tuple(float(np.nanmean(each, dtype=np.float64)) for each in numbers)
    deviation = tuple(float(np.nanstd(each, dtype=np.float64)) or 1.0 for each in numbers)
    gaps = any(bool(np.isnan(each).any()) for each in numbers)
    return replace(one, mean=mean, deviation=deviation, gaps=gaps)


def numbers_of(one: TableColumn, column: "polars.Series", texts: "Mapping[str, LongTexts]") -> Iterator[Numbers]:
    """The float32 columns, [n] each, that ``column`` becomes; ``texts`` are those that were learned of long texts."""
    import polars

    if one.kind == "category":
        text = column if is_text(column) else as_text(column)
        yield text.cast(polars.Enum(one.values), strict=False).to_physical().cast(polars.Float32).to_numpy()
    elif one.kind == "date":
        yield from _date_parts(read_column(one, column), one.parts)
    elif one.kind == "text":
        yield from texts[one.name].numbers(column).T
    else:
        yield _number(column, one.kind)


def read_column(one: TableColumn, column: "polars.Series") -> "polars.Series":
    """The values of ``column`` as the kind they had in training, null where they cannot be read so."""
    if one.kind == "date" and one.date_format and is_text(column):
        return _dates(column, one.date_format)
    return as_kind(column, one.read_as)


def as_text(column: "polars.Series") -> "polars.Series":
    """The values as texts, whole numbers without a point."""
    import polars

    if column.dtype == polars.Duration:  # polars writes none as texts
        column = column.to_physical()
    if column.dtype.is_float():
        return column.fill_nan(None).cast(polars.String).str.strip_suffix(".0").replace("-0", "0")
    return column.cast(polars.String, strict=False)


def _number(column: "polars.Series", kind: str) -> Numbers:
    import polars

    values: Numbers = as_kind(column, kind).cast(polars.Float32, strict=False).to_numpy()
    infinite = np.isinf(values)
    return np.where(infinite, np.float32(np.nan), values) if infinite.any() else values


def _differs(numbers: Numbers, *, gaps_count: bool = True) -> bool:
    """Whether there are two values; with ``gaps_count`` a missing one is a value beside another."""
    missing = np.isnan(numbers)
    if missing.all():
        return False
    return (gaps_count and bool(missing.any())) or bool(np.nanmin(numbers) < np.nanmax(numbers))


def _date_column(column: "polars.Series", date_format: str, *, was_text: bool) -> TableColumn:
    one = TableColumn(column.name, "date", date_format=date_format, was_text=was_text)
    made = zip(_DATE_PARTS, _date_parts(read_column(one, column), _DATE_PARTS), strict=True)
    parts = tuple(part for part, numbers in made if _differs(numbers, gaps_count=part == "days"))
    return replace(one, width=len(parts), parts=parts)


def _date_parts(dates: "polars.Series", parts: Sequence[str]) -> Iterator[Numbers]:
    import polars

    for part in parts:
        numbers = dates.to_physical() / _MICROSECONDS if part == "days" else getattr(dates.dt, part)()
        yield numbers.cast(polars.Float32).to_numpy()


def _date_format(texts: "polars.Series") -> str:
    """The first of the formats that reads all of the distinct ``texts`` as dates; empty if none does."""
    if not len(texts):
        return ""
    return next(
        (
            one
            for one in _DATE_FORMATS
            if not any(_dates(some, one).null_count() for some in (texts.head(_FIRST), texts))
        ),
        "",
    )


def _dates(column: "polars.Series", date_format: str) -> "polars.Series":
    import polars

    return column.cast(polars.String).str.strptime(polars.Datetime("us"), date_format, strict=False)


@final
@dataclass(frozen=True, eq=False)
class LongTexts:
    """Texts of many values as numbers that keep similar texts near each other.

    A text is the counts of its pieces of three and four characters, hashed, weighted by how rare a piece is in training
    (``rarity`` [buckets]) and projected on the main directions of the training texts (``directions`` [30, buckets]). This is
    scikit-learn's HashingVectorizer, TfidfTransformer and TruncatedSVD. A missing text is 0 in all numbers.
    """

    rarity: NDArray[np.float64]
    directions: Numbers

    @classmethod
    def fit(cls, column: "polars.Series") -> Self:
        """What is learned from the training values."""
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfTransformer
        from threadpoolctl import threadpool_limits

        counts = _piece_counts(column)
        seen = counts.getnnz(axis=0) > 0
        rarity: NDArray[np.float64] = np.where(seen, TfidfTransformer().fit(counts).idf_, 0.0)
        with threadpool_limits(1):  # several threads sum in another order, which changes the last digits
            directions = TruncatedSVD(TEXT_WIDTH, random_state=0).fit(_weighted(counts, rarity)).components_
        return cls(rarity, np.ascontiguousarray(directions, dtype=np.float32))

    def numbers(self, column: "polars.Series") -> Numbers:
        """The numbers of new texts, [n, 30]."""
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):
            made: Numbers = (_weighted(_piece_counts(column), self.rarity) @ self.directions.T).astype(np.float32)
        return made


def _weighted(counts: Any, rarity: NDArray[np.float64]) -> Any:
    """The counts of each text, weighted by rarity and scaled to length 1, sparse [n, buckets]."""
    from sklearn.preprocessing import normalize

    return normalize(counts.multiply(rarity).tocsr())


def _piece_counts(column: "polars.Series") -> Any:
    """How often each piece of three and four characters is in each text, sparse [n, buckets]."""
    from sklearn.feature_extraction.text import HashingVectorizer

    text = as_text(column)
    filled = text.set(is_missing(text), None).fill_null("")
    counter = HashingVectorizer(
        analyzer="char_wb", ngram_range=(3, 4), n_features=_TEXT_BUCKETS, alternate_sign=False, norm=None
    )
    return counter.transform(filled.to_list())
