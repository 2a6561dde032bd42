"""From the columns of a table to what trees take: numbers as they are, a code for each category, NaN for what is missing.

- A number is its float32 value, neither standardised nor clipped; infinite is missing. Whole numbers above 2**24, such as ids and
  timestamps, lose their last digits.
- A text, categorical or boolean of at most 100 training values is the place of its value among them, sorted; values that
  training did not have are missing. White space counts: " a" and "a" are two values, as in one-hot columns.
- A text whose training values all are numbers, also with a decimal comma, or all are dates, is read as these.
- A date is the days since 1970, and its month, weekday and hour where they differ in training.
- A text of more values is the 30 numbers of skrub's StringEncoder. Only for these skrub is imported.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, final

import numpy as np

from umix.data.rows.column_kinds import FEW_VALUES, ColumnType, as_kind, is_missing, is_text, kind_of, reads_as
from umix.data.rows.role_columns import Rows
from umix.data.tables.column_file import load_columns, save_columns
from umix.data.tables.input_columns import Numbers, finite
from umix.data.tables.skrub_state import applied, load_state, save_state, steady
from umix.data.tables.table_reader import Matrix, TableReader
from umix.errors import UserError
from umix.files import reading
from umix.run_folder import TABLE_CODES, TABLE_TEXTS

if TYPE_CHECKING:
    import polars

_FORMAT, _TEXTS_FORMAT = "umix table codes 1", "umix table texts 1"
_PARTS = ("days", "month", "weekday", "hour")
_MOST_WIDE = 10_000  # numbers that a text becomes
_MICROSECONDS = 86_400e6  # in a day


@final
@dataclass(frozen=True)
class CodedColumn:
    """How one input column becomes numbers; ``width`` 0: constant or empty in training, left out.

    ``values`` are those of a category, ``parts`` those of a moment. ``was_text`` says that it held texts in training.
    """

    name: str
    kind: Literal["number", "decimal_comma", "category", "moment", "text"]
    width: int = 1
    values: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    was_text: bool = False

    @property
    def fault(self) -> str:
        """What is wrong with a column that was read from a file, in words; empty if nothing is."""
        of_kind = {"moment": (len(self.parts),), "text": range(1, _MOST_WIDE)}.get(self.kind, (0, 1))
        if self.width not in of_kind or not set(self.parts) <= set(_PARTS if self.kind == "moment" else ()):
            return f"the numbers of {self.name!r} are not those of a {self.kind} column"
        if len(set(self.values)) < len(self.values) or bool(self.values) > (self.kind == "category"):
            return f"the values of {self.name!r} are not those of a {self.kind} column"
        return ""

    @property
    def type(self) -> ColumnType:
        """What the column is to people."""
        names: dict[str, ColumnType] = {"category": "category", "moment": "date", "text": "text"}
        return names.get(self.kind, "number") if self.width else "constant"

    @property
    def categories(self) -> tuple[int, ...]:
        """The number of category values of each number that the column becomes, 0 for a quantity."""
        return (len(self.values),) * self.width


@final
class TableCodes(TableReader):
    """The codes of a table's input columns, fitted on its training rows.

    ``encoders`` has a fitted StringEncoder for each column of kind text.
    """

    def __init__(
        self,
        coded: Sequence[CodedColumn],
        encoders: Mapping[str, Any],
        *,
        label: str,
        id: str | None,
        others: Sequence[str],
    ) -> None:
        TableReader.__init__(
            self,
            label=label,
            id=id,
            others=others,
            kinds={one.name: "text" if one.kind == "category" else one.kind for one in coded},
            dropped=[one.name for one in coded if not one.width],
            values={one.name: one.values for one in coded if one.width and one.values},
            types={one.name: one.type for one in coded},
        )
        self._coded = tuple(coded)
        self._encoders = dict(encoders)

    @classmethod
    def fit(
        cls,
        frame: "polars.DataFrame",
        train: Rows,
        *,
        label: str,
        id: str | None,
        others: Sequence[str] = (),
        as_categories: Collection[str] = (),
    ) -> Self:
        """The codes of the input columns ``frame``, learned from its rows ``train``.

        ``others`` have another role. Numbers, and texts of numbers, in ``as_categories`` are categories.
        """
        coded, encoders = [], {}
        for column in frame.iter_columns():
            known = column.rechunk().gather(train)
            one = _fit_column(known, category=column.name in as_categories)
            if one.kind == "text":
                encoder, width = _fit_encoder(known)
                encoders[one.name], one = encoder, replace(one, width=width)
            coded.append(one)
        if not any(one.width for one in coded):
            names = ", ".join(frame.columns)
            raise UserError(f"The inputs {names} must differ between training rows, but all are constant.")
        return cls(coded, encoders, label=label, id=id, others=others)

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (sum(one.width for one in self._coded),)

    @property
    def coded(self) -> tuple[CodedColumn, ...]:
        """The input columns, in order, and how each becomes numbers."""
        return self._coded

    @property
    def categories(self) -> tuple[int, ...]:
        """The number of category values of each column of the matrix, 0 for a number."""
        return tuple(size for one in self._coded for size in one.categories)

    def transform(self, frame: "polars.DataFrame") -> Matrix:
        """The matrix of ``frame``, [n, width]; unseen values of categories and unreadable numbers are NaN."""
        self.check_columns(frame)
        return self.take(frame.clone(), {"all": np.arange(len(frame))})["all"]

    def take(self, frame: "polars.DataFrame", rows: Mapping[str, Rows]) -> dict[str, Matrix]:
        """The matrices of the given rows, each [n, width] in Fortran order; the input columns are taken out of ``frame``.

        A column of the table is freed when its numbers are written, and a matrix takes memory column by column. So the
        table and the matrices are never whole in memory at the same time.
        """
        width = sum(one.width for one in self._coded)
        made = {name: np.empty((len(index), width), dtype=np.float32, order="F") for name, index in rows.items()}
        place, there = 0, set(frame.columns)
        for one in self._coded:
            if not one.width:
                if one.name in there:
                    frame.drop_in_place(one.name)
                continue
            for numbers in self._numbers(one, frame.drop_in_place(one.name)):
                for name, index in rows.items():
                    np.take(numbers, index, out=made[name][:, place], mode="clip")  # "raise" copies it once more
                place += 1
        return made

    def _numbers(self, one: CodedColumn, column: "polars.Series") -> Iterator[Numbers]:
        """The float32 columns, [n] each, that ``column`` becomes."""
        if one.kind == "category":
            yield _codes(column, one.values)
        elif one.kind == "moment":
            yield from _moment_parts(column, one.parts)
        elif one.kind == "text":
            with applied(TABLE_TEXTS), steady():
                made = list(_columns(self._encoders[one.name].transform(_known_texts(column))))
                if len(made) != one.width:
                    raise ValueError(f"{len(made)} numbers of {one.name!r} instead of {one.width}")
            yield from made
        else:
            yield _number(column, one.kind)

    def _missing(self, column: "polars.Series") -> "polars.Series":
        was_text = {one.name for one in self._coded if one.was_text}
        return is_missing(column) if column.name in was_text else column.is_null()

    def _text(self, column: "polars.Series") -> "polars.Series":
        return _as_text(column)

    def save(self, directory: Path) -> None:
        """Write everything into ``directory``: JSON, and a skops file where there are long texts."""
        if self._encoders:
            save_state(directory / TABLE_TEXTS, {"format": _TEXTS_FORMAT, "encoders": dict(self._encoders)})
        columns = [asdict(one) for one in self._coded]
        roles: dict[str, Any] = {"label": self.label, "id": self.id, "others": self.others}
        save_columns(directory / TABLE_CODES, columns, format=_FORMAT, **roles)

    @classmethod
    def load(cls, directory: Path) -> Self:
        """What ``save`` wrote; nothing in it is ever executed."""
        file = load_columns(directory / TABLE_CODES, CodedColumn, format=_FORMAT)
        encoders, path = {}, directory / TABLE_TEXTS
        if texts := [one.name for one in file.columns if one.kind == "text"]:
            state = load_state(path, format=_TEXTS_FORMAT)
            with reading(path, "preprocessing", fix="run again"):
                encoders = {name: state["encoders"][name] for name in texts}
        return cls(file.columns, encoders, label=file.label, id=file.id, others=file.others)


def _fit_column(column: "polars.Series", *, category: bool) -> CodedColumn:
    """How the column becomes numbers, learned from its training values; a text of many values has no width yet."""
    import polars

    name, was_text = column.name, is_text(column)
    kind = kind_of(column)
    if column.dtype == polars.Boolean or (category and kind == "number"):
        kind = "text"
    values = polars.Series([], dtype=polars.String)
    if kind == "text":
        distinct = _as_text(column.unique())
        values = distinct.filter(~is_missing(distinct)).unique().sort()
        if column.dtype == polars.String and not category:
            kind = reads_as(values)
    if kind == "text" and len(values) > FEW_VALUES:
        return CodedColumn(name, "text", was_text=was_text)
    if kind == "text":
        only = len(values) == 1 and not is_missing(_as_text(column)).any()
        found = tuple(values.to_list())
        return CodedColumn(name, "category", int(bool(found) and not only), found, was_text=was_text)
    if kind == "moment":
        parts = tuple(
            part
            for part, numbers in zip(_PARTS, _moment_parts(column, _PARTS), strict=True)
            if _differs(numbers, gaps_count=part == "days")
        )
        return CodedColumn(name, "moment", len(parts), parts=parts, was_text=was_text)
    return CodedColumn(name, kind, int(_differs(_number(column, kind))), was_text=was_text)


def _differs(numbers: Numbers, *, gaps_count: bool = True) -> bool:
    """Whether there are two values; with ``gaps_count`` a missing one is a value beside another."""
    missing = np.isnan(numbers)
    if missing.all():
        return False
    return (gaps_count and bool(missing.any())) or bool(np.nanmin(numbers) < np.nanmax(numbers))


def _number(column: "polars.Series", kind: str) -> Numbers:
    import polars

    return finite(as_kind(column, kind).cast(polars.Float32, strict=False).to_numpy())


def _codes(column: "polars.Series", values: Sequence[str]) -> Numbers:
    import polars

    text = column if is_text(column) else _as_text(column)
    codes = text.cast(polars.Enum(values), strict=False).to_physical()
    numbers: Numbers = codes.cast(polars.Float32).to_numpy()
    return numbers


def _moment_parts(column: "polars.Series", parts: Sequence[str]) -> Iterator[Numbers]:
    import polars

    moment = as_kind(column, "moment")
    for part in parts:
        numbers = moment.to_physical() / _MICROSECONDS if part == "days" else getattr(moment.dt, part)()
        yield numbers.cast(polars.Float32).to_numpy()


def _as_text(column: "polars.Series") -> "polars.Series":
    """The values as texts, whole numbers without a point."""
    import polars

    if column.dtype == polars.Duration:  # polars writes none as texts
        column = column.to_physical()
    if column.dtype.is_float():
        return column.fill_nan(None).cast(polars.String).str.strip_suffix(".0").replace("-0", "0")
    return column.cast(polars.String, strict=False)


def _known_texts(column: "polars.Series") -> "polars.Series":
    """The values as texts, null where they are missing."""
    text = _as_text(column)
    return text.set(is_missing(text), None)


def _fit_encoder(column: "polars.Series") -> tuple[Any, int]:
    """A StringEncoder fitted to the training values, and how many numbers it makes of each."""
    from skrub import StringEncoder

    encoder = StringEncoder(random_state=0)
    with steady():
        made = encoder.fit_transform(_known_texts(column))
    return encoder, made.width


def _columns(table: "polars.DataFrame") -> Iterator[Numbers]:
    import polars

    for column in table.iter_columns():
        yield column.cast(polars.Float32).to_numpy()
