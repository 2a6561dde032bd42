"""From the columns of a table to a float32 matrix: numbers are standardised, gaps filled, texts become 0/1 columns.

Texts that mean missing: empty, NA, N/A, nan, null, None, ?, … Texts that all are numbers, or all dates, are read as these.
Numbers and dates are standardised with the training split's mean and deviation, cut at ±10 deviations; a gap becomes the mean,
and a column with gaps in training gets a second one that marks them. Texts of fewer than 100 values become 0/1 columns, longer
lists 30 numbers that keep similar texts near each other. Only for dates and for these skrub is imported.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, final

import numpy as np

from umix.data.rows.column_kinds import FEW_VALUES, cast
from umix.data.tables.column_file import load_columns, save_columns
from umix.data.tables.input_columns import InputColumn, Numbers, finite, fit_column, indicators, numbers
from umix.data.tables.skrub_state import applied, load_state, save_state, steady
from umix.data.tables.table_reader import Matrix, TableReader, Unseen
from umix.errors import UserError
from umix.files import reading
from umix.run_folder import TABLE_BEFORE_0_2, TABLE_COLUMNS, TABLE_VECTORIZER

if TYPE_CHECKING:
    import polars

_FORMAT, _SKRUB_FORMAT, _FIRST_FORMAT = "umix table columns 1", "umix table vectorizer 1", "umix table preprocessing 1"
#: Standardised numbers are cut at plus and minus so many deviations.
FARTHEST = 10.0


@final
class TablePreprocessing(TableReader):
    """Preprocessing fitted on the training rows of a table.

    ``input_columns`` says for each input column, in order, which numbers it becomes. The matrix has the numbers of all columns
    in this order, and then the marks of the columns that are ``marked``. Where ``needs_skrub`` is empty, these values are all
    there is to it. Otherwise ``vectorizer`` is a fitted TableVectorizer of skrub, whose outputs for these columns are taken.
    """

    def __init__(
        self,
        input_columns: Sequence[InputColumn],
        vectorizer: Any = None,
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
            kinds={one.name: one.read_as for one in input_columns},
            dropped=[one.name for one in input_columns if one.kind == "constant"],
            values={one.name: one.values for one in input_columns if one.kind == "category"},
            types={one.name: one.type for one in input_columns},
        )
        self.input_columns = tuple(input_columns)
        self._vectorizer = vectorizer

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (sum(one.width + one.marked for one in self.input_columns),)

    @property
    def needs_skrub(self) -> tuple[str, ...]:
        """The columns that skrub turns into numbers: dates, and texts of many values."""
        return tuple(one.name for one in self.input_columns if one.kind == "skrub")

    @classmethod
    def fit(
        cls, frame: "polars.DataFrame", *, label: str, id: str | None, others: Sequence[str] = ()
    ) -> tuple[Self, Matrix]:
        """The preprocessing of the input columns ``frame`` and their matrix, [n, width]; ``others`` have another role."""
        columns = [fit_column(column) for column in frame.iter_columns()]
        if all(one.kind == "constant" for one in columns):
            names = ", ".join(frame.columns)
            raise UserError(f"The inputs {names} must differ between training rows, but all are constant.")
        vectorizer, table = _fit_vectorizer(
            cast(frame, {one.name: one.read_as for one in columns if one.kind == "skrub"})
        )
        columns = [_sized(one, vectorizer) if one.kind == "skrub" else one for one in columns]
        known: Matrix = np.empty((len(frame), sum(len(one.mean) for one in columns)), dtype=np.float32, order="F")
        for i, values in enumerate(_quantities(columns, frame, vectorizer, table)):
            known[:, i] = values
        fitted = cls(_standardised(columns, known), vectorizer, label=label, id=id, others=others)
        return fitted, fitted._matrix(frame, table)[0]

    def transform(self, frame: "polars.DataFrame") -> Matrix:
        """The matrix of ``frame``, [n, width]; unseen values of one-hot columns become 0, unreadable numbers are missing."""
        return self.read(frame)[0]

    def read(self, frame: "polars.DataFrame") -> tuple[Matrix, Unseen]:
        """The matrix of ``frame``, [n, width], and the values of categories that training had not."""
        self.check_columns(frame)
        table = None
        if self.needs_skrub:
            with applied(TABLE_VECTORIZER), steady():
                kinds = {name: self.kinds[name] for name in self._vectorizer.feature_names_in_}
                table = self._vectorizer.transform(cast(frame, kinds))
        return self._matrix(frame, table)

    def _matrix(self, frame: "polars.DataFrame", table: "polars.DataFrame | None") -> tuple[Matrix, Unseen]:
        """The matrix, and the unseen values of categories; ``table`` is what skrub made of the columns that need it."""
        width, marks = sum(one.width for one in self.input_columns), sum(one.marked for one in self.input_columns)
        x: Matrix = np.zeros((len(frame), width + marks), dtype=np.float32)
        flat, begins = x.reshape(-1), np.arange(len(frame)) * x.shape[1]  # a view, and where its rows begin
        unseen: Unseen = {}
        quantities = _quantities(self.input_columns, frame, self._vectorizer, table)
        place, mark = 0, width
        for one in self.input_columns:
            if one.kind == "category":
                at, values, odd = indicators(one, frame[one.name])
                at += begins
                flat[place:][at] = values
                unseen |= {one.name: odd} if len(odd) else {}
            for i, (mean, deviation) in enumerate(zip(one.mean, one.deviation, strict=True)):
                values = next(quantities)
                if one.marked and i == 0:
                    x[:, mark] = np.isnan(values)
                    mark += 1
                x[:, place + i] = _scaled(values, np.float64(mean), np.float64(deviation))
            place += one.width
        return x, unseen

    def save(self, directory: Path) -> None:
        """Write everything into ``directory`` without pickle: JSON, and a skops file where skrub is needed."""
        if self.needs_skrub:
            save_state(directory / TABLE_VECTORIZER, {"format": _SKRUB_FORMAT, "vectorizer": self._vectorizer})
        columns = [one.as_json() for one in self.input_columns]
        roles: dict[str, Any] = {"label": self.label, "id": self.id, "others": self.others}
        save_columns(directory / TABLE_COLUMNS, columns, format=_FORMAT, **roles)

    @classmethod
    def load(cls, directory: Path) -> Self:
        """What ``save`` wrote; a file with types that are not trusted is refused before any of its code could run."""
        if not (directory / TABLE_COLUMNS).exists() and (directory / TABLE_BEFORE_0_2).exists():
            return cls._load_first_format(directory / TABLE_BEFORE_0_2)
        file = load_columns(directory / TABLE_COLUMNS, InputColumn, format=_FORMAT)
        vectorizer, path = None, directory / TABLE_VECTORIZER
        if by_skrub := [one for one in file.columns if one.kind == "skrub"]:
            state = load_state(path, format=_SKRUB_FORMAT)
            with reading(path, "preprocessing", fix="run again"):
                vectorizer = state["vectorizer"]
                for one in by_skrub:
                    if len(vectorizer.input_to_outputs_[one.name]) != len(one.mean):
                        raise ValueError(f"it makes other numbers of {one.name!r}")
        return cls(file.columns, vectorizer, label=file.label, id=file.id, others=file.others)

    @classmethod
    def _load_first_format(cls, path: Path) -> Self:
        """What umix 0.1 wrote: a vectorizer of all columns, from which the plain ones are read."""
        state = load_state(path, format=_FIRST_FORMAT)
        with reading(path, "preprocessing", fix="run again"):
            return cls._of_first_format(state)

    @classmethod
    def _of_first_format(cls, state: dict[str, Any]) -> Self:
        vectorizer = state["vectorizer"]
        scaling = iter(zip(state["mean"].tolist(), state["deviation"].tolist(), strict=True))
        columns, place = [], 0
        for name, read_as in state["kinds"].items():
            outputs = [] if name in state["dropped"] else vectorizer.input_to_outputs_[name]
            kind = vectorizer.column_to_kind_.get(name)
            if kind == "low_cardinality":
                values = vectorizer.transformers_[name].categories_[0].tolist()
                texts = tuple(value for value in values if value is not None)
                columns.append(InputColumn(name, read_as, "category", values=texts, gaps=None in values))
            elif not outputs:
                columns.append(InputColumn(name, read_as, "constant"))
            else:
                mean, deviation = zip(*(next(scaling) for _ in outputs), strict=True)
                marked = not set(state["marked"].tolist()).isdisjoint(range(place, place + len(outputs)))
                made: Literal["number", "skrub"] = "number" if kind == "numeric" else "skrub"
                dates = kind == "datetime" and read_as == "text"
                columns.append(
                    InputColumn(name, read_as, made, mean=mean, deviation=deviation, marked=marked, dates=dates)
                )
            place += len(outputs)
        return cls(columns, vectorizer, label=state["label"], id=state["id"] or None, others=state.get("others", ()))


def _quantities(
    columns: Sequence[InputColumn], frame: "polars.DataFrame", vectorizer: Any, table: "polars.DataFrame | None"
) -> Iterator[Numbers]:
    """The numbers that are standardised, [n] each, as they are before it; ``table`` is what ``vectorizer`` made."""
    for one in columns:
        if one.kind == "number":
            yield numbers(one, frame[one.name])
        elif one.kind == "skrub" and table is not None:
            for name in vectorizer.input_to_outputs_[one.name]:
                yield finite(table[name].to_numpy())


def _scaled(values: Numbers, mean: np.float64, deviation: np.float64) -> Numbers:
    """The standardised values, 0 (the mean) where they are missing.

    With numbers of float64 NumPy computes in float64 and rounds twice, as it does since umix 0.1; by floats of Python it would
    compute in float32.
    """
    made = np.empty_like(values)
    np.subtract(values, mean, out=made, casting="same_kind")
    np.divide(made, deviation, out=made, casting="same_kind")
    np.clip(made, -FARTHEST, FARTHEST, out=made)
    return np.nan_to_num(made, copy=False)


def _standardised(columns: Sequence[InputColumn], known: Matrix) -> list[InputColumn]:
    """The columns with mean, deviation and mark from their ``known`` numbers in training, Fortran order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # where all values are missing the mean is NaN
        mean = np.nan_to_num(np.nanmean(known, axis=0, dtype=np.float64))
        deviation = np.nan_to_num(np.nanstd(known, axis=0, dtype=np.float64))
    gaps = [bool(np.isnan(column).any()) for column in known.T]
    found = iter(zip(mean.tolist(), np.where(deviation > 0, deviation, 1.0).tolist(), gaps, strict=True))
    made = []
    for one in columns:
        own = list(islice(found, len(one.mean)))
        marked = any(gap for _, _, gap in own)
        made.append(
            replace(one, mean=tuple(m for m, _, _ in own), deviation=tuple(d for _, d, _ in own), marked=marked)
        )
    return made


def _fit_vectorizer(frame: "polars.DataFrame") -> tuple[Any, "polars.DataFrame | None"]:
    """A TableVectorizer fitted to the columns that need it, and what it makes of them; None where there are none."""
    if not frame.width:
        return None, None
    from skrub import StringEncoder, TableVectorizer

    vectorizer = TableVectorizer(
        cardinality_threshold=FEW_VALUES, high_cardinality=StringEncoder(random_state=0), drop_if_constant=True
    )
    with steady():
        return vectorizer, vectorizer.fit_transform(frame)


def _sized(one: InputColumn, vectorizer: Any) -> InputColumn:
    """The column with as many numbers as ``vectorizer`` makes of it, not standardised yet."""
    width = len(vectorizer.input_to_outputs_[one.name])
    return replace(one, mean=(0.0,) * width, deviation=(1.0,) * width)
