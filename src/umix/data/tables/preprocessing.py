"""The preprocessing of a table, fitted on its training rows: categories as codes, numbers with gaps, for every learner.

Trees and the net ``tabular`` take this matrix as it is. For other nets and estimators it is turned into 0/1 columns and
standardised numbers (``one_hot.py``). How single columns are read is in ``columns.py``.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import TypeAdapter
from torch import Tensor
from typing_extensions import TypedDict

from umix.data.rows.column_kinds import ColumnType, Kind, is_missing, is_plain
from umix.data.rows.reader import NewInputs, Note, Reader, stacked
from umix.data.rows.role_columns import Rows
from umix.data.rows.table_blocks import table_blocks
from umix.data.rows.table_file import as_frame
from umix.data.tables.bins import Bins
from umix.data.tables.columns import (
    LongTexts,
    TableColumn,
    as_text,
    column_of,
    numbers_of,
    read_column,
    with_statistics,
)
from umix.data.tables.one_hot import OneHot
from umix.data.task import Task
from umix.errors import UserError
from umix.run_folder import TABLE_COLUMNS, TABLE_TEXTS
from umix.store import atomic_write, read_arrays, reading, write_arrays

if TYPE_CHECKING:
    import polars

Matrix = NDArray[np.float32]


class _State(TypedDict):
    """What the JSON file holds."""

    input_columns: tuple[TableColumn, ...]
    label: str
    id: str | None
    others: tuple[str, ...]
    one_hot: bool
    bins: dict[str, Bins]


@final
@dataclass(frozen=True, eq=False)
class TablePreprocessing(Reader):
    """From the rows of a table to the inputs of a learner, as in training.

    ``input_columns`` says for each input column, in order, which numbers it becomes, and ``texts`` has what was learned of
    those of long texts. ``others`` are columns of the training table that have another role or were dropped by the user.
    With ``one_hot``, inputs are 0/1 columns and standardised numbers instead of codes and NaN. ``bins`` count the training rows by
    the values of each column.
    """

    input_columns: tuple[TableColumn, ...]
    label: str
    id: str | None
    others: tuple[str, ...] = ()
    one_hot: bool = False
    texts: Mapping[str, LongTexts] = field(default_factory=dict)
    bins: Mapping[str, Bins] = field(default_factory=dict)

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
        """The preprocessing of the input columns ``frame``, learned from its rows ``train``.

        Numbers, and texts of numbers, in ``as_categories`` are categories.
        """
        columns, texts, bins = list[TableColumn](), dict[str, LongTexts](), dict[str, Bins]()
        for column in frame.iter_columns():
            values = column.rechunk().gather(train)
            one = column_of(values, category=column.name in as_categories)
            if one.kind == "text":
                texts[one.name] = LongTexts.fit(values)
            if one.width:
                numbers = list(numbers_of(one, values, texts))
                one = with_statistics(one, numbers)
                if (counted := Bins.of(one, numbers[0])) is not None:
                    bins[one.name] = counted
            columns.append(one)
        if not any(one.width for one in columns):
            names = ", ".join(frame.columns)
            raise UserError(f"The inputs {names} must differ between training rows, but all are constant.")
        return cls(tuple(columns), label, id, tuple(others), texts=texts, bins=bins)

    @property
    def columns(self) -> list[str]:
        """The input columns, in order."""
        return [one.name for one in self.input_columns]

    @property
    def kinds(self) -> dict[str, Kind]:
        """What each input column is read as."""
        return {one.name: one.read_as for one in self.input_columns}

    @property
    def types(self) -> dict[str, ColumnType]:
        """What each input column is to people."""
        return {one.name: one.type for one in self.input_columns}

    @property
    def values(self) -> dict[str, tuple[str, ...]]:
        """The training values of each category."""
        return {one.name: one.values for one in self.input_columns if one.width and one.values}

    @property
    def dropped(self) -> list[str]:
        """The input columns that are left out: constant or empty in training."""
        return sorted(one.name for one in self.input_columns if not one.width)

    @property
    def categories(self) -> tuple[int, ...]:
        """The number of category values of each column of codes, 0 for a number; none where inputs are one-hot."""
        return () if self.one_hot else tuple(size for one in self.input_columns for size in one.categories)

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (OneHot(self.input_columns).width if self.one_hot else self._width,)

    @property
    def _width(self) -> int:
        return sum(one.width for one in self.input_columns)

    def transform(self, frame: "polars.DataFrame") -> Matrix:
        """The matrix of ``frame``, [n, width]; raises where columns of training are missing."""
        self.check_columns(frame)
        made: Matrix = self.from_codes(self.codes(frame)).numpy()
        return made

    def take(self, frame: "polars.DataFrame", rows: Mapping[str, Rows]) -> dict[str, Matrix]:
        """The codes of the given rows, each [n, columns] in Fortran order; the input columns are taken out of ``frame``.

        A column of the table is freed when its numbers are written, and a matrix takes memory column by column. So the
        table and the matrices are never whole in memory at the same time.
        """
        made = {name: np.empty((len(index), self._width), dtype=np.float32, order="F") for name, index in rows.items()}
        place, there = 0, set(frame.columns)
        for one in self.input_columns:
            column = frame.drop_in_place(one.name) if one.name in there else None
            if column is None or not one.width:
                continue
            for numbers in numbers_of(one, column, self.texts):
                for name, index in rows.items():
                    np.take(numbers, index, out=made[name][:, place], mode="clip")  # "raise" copies it once more
                place += 1
        return made

    def inputs(self, new: Any) -> NewInputs:
        """The rows of a table (a path, a polars or a pandas frame): columns of training must be there, others are ignored."""
        return self._block(as_frame(new))

    def blocks(self, new: Any) -> Iterator[NewInputs]:
        """The rows of a table, a block after the other; ``new`` may also be an open file with CSV."""
        return map(self._block, self.frames(new))

    def frames(self, new: Any) -> "Iterator[polars.DataFrame]":
        """The rows as they are in the table, a block after the other; in CSV, texts are read as they are written."""
        texts = {name for name, kind in self.kinds.items() if kind in ("text", "decimal_comma")}
        return table_blocks(new, texts=texts, copied=self.id)

    def _block(self, frame: "polars.DataFrame") -> NewInputs:
        self.check_columns(frame)
        codes = self.codes(frame)
        ids = {self.id: frame[self.id]} if self.id in frame.columns else {}
        return NewInputs(self.from_codes(codes), ids=ids, notes=tuple(self._notes(frame, codes)))

    def codes(self, frame: "polars.DataFrame") -> Matrix:
        """The codes of all rows of ``frame``, [n, columns]; the places of each column are ``places``."""
        return self.take(frame.clone(), {"all": np.arange(len(frame))})["all"]

    @property
    def places(self) -> dict[str, slice]:
        """Which columns of the codes each input column becomes; those that are left out become none."""
        ends = np.cumsum([one.width for one in self.input_columns]).tolist()
        return {
            one.name: slice(end - one.width, end)
            for one, end in zip(self.input_columns, ends, strict=True)
            if one.width
        }

    def from_codes(self, codes: Matrix) -> Tensor:
        """The inputs of a learner for rows of these codes, [n, ...]."""
        x = torch.from_numpy(codes)
        return OneHot(self.input_columns).whole(x) if self.one_hot else x

    def check_columns(self, frame: "polars.DataFrame") -> None:
        """Raise where ``frame`` has no rows, or not the columns of training; those that are left out are not missed."""
        there = frame.schema  # looked up once: a table may have thousands of columns
        missing = [one.name for one in self.input_columns if one.width and one.name not in there]
        if missing:
            raise UserError(
                f"The table must have the columns the model was trained with, but {', '.join(map(repr, missing))} "
                f"{'is' if len(missing) == 1 else 'are'} missing."
            )
        if not len(frame):
            raise UserError("The table must have rows, but it is empty.")
        for name in self.columns:
            if name in there and not is_plain(there[name]):
                raise UserError(
                    f"The column {name!r} must hold numbers, texts or dates as in training, got {there[name]}."
                )

    def _notes(self, frame: "polars.DataFrame", codes: Matrix) -> list[Note | str]:
        """Notes about columns that training did not have, odd values, and a missing id column."""
        expected = {*self.columns, self.id, self.label, *self.others}
        extra = [name for name in frame.columns if name not in expected]
        notes: list[Note | str] = []
        if extra:
            notes.append(f"Ignored columns that the model was not trained with: {', '.join(extra)}.")
        unreadable, unseen, place = list[Note](), list[Note](), 0
        for one in (one for one in self.input_columns if one.width):
            odd = frame[one.name].filter(np.isnan(codes[:, place]))  # the values without a number
            place += one.width
            if one.kind == "category":
                unseen += _unseen(one, odd)
            else:
                unreadable += _unreadable(one, odd)
        notes += [*unreadable, *unseen]
        if self.id and self.id not in frame.columns:
            notes.append(f"The table has no id column {self.id!r}: predictions are in the order of its rows.")
        return notes

    def save(self, directory: Path) -> None:
        """Write everything into ``directory``: JSON, and arrays where there are long texts."""
        if self.texts:
            arrays: dict[str, NDArray[Any]] = {f"rarity/{name}": one.rarity for name, one in self.texts.items()}
            arrays |= {f"directions/{name}": one.directions for name, one in self.texts.items()}
            write_arrays(directory / TABLE_TEXTS, arrays, {"kind": "long texts"})
        state = {name: getattr(self, name) for name in _State.__annotations__}
        columns, bins = [asdict(one) for one in self.input_columns], {name: asdict(b) for name, b in self.bins.items()}
        content = json.dumps({**state, "input_columns": columns, "bins": bins}, ensure_ascii=False)
        atomic_write(directory / TABLE_COLUMNS, content.encode())

    @classmethod
    def load(cls, directory: Path) -> Self:
        """What ``save`` wrote; nothing in it is ever executed."""
        path = directory / TABLE_COLUMNS
        with reading(path, "preprocessing", fix="run again"):
            state = TypeAdapter(_State).validate_json(path.read_bytes())
        texts = {}
        if names := [one.name for one in state["input_columns"] if one.kind == "text"]:
            arrays, _ = read_arrays(directory / TABLE_TEXTS, kind="long texts")
            texts = {name: LongTexts(arrays[f"rarity/{name}"], arrays[f"directions/{name}"]) for name in names}
        return cls(**state, texts=texts)


def _unseen(one: TableColumn, column: "polars.Series") -> list[Note]:
    """A note about the values of a category that did not occur in training, if there are some."""
    texts = as_text(column)
    new = texts.filter(~is_missing(texts))
    if not len(new):
        return []
    text = f"{{n_values}} of {one.name!r} did not occur in training ({{values}}): treated as none of its known values."
    return [Note(text, len(new), values=tuple(sorted(new.unique().to_list())))]


def _unreadable(one: TableColumn, column: "polars.Series") -> list[Note]:
    """A note about the values that cannot be read as in training, if there are some: they are treated as missing."""
    missing = is_missing(column) if one.was_text else column.is_null()
    odd = as_text(column.filter(read_column(one, column).is_null() & ~missing))
    if not len(odd):
        return []
    text = f"{{n_values}} of {one.name!r} could not be read as {one.type}s ({{values}}): treated as missing."
    return [Note(text, len(odd), values=tuple(sorted(odd.unique().to_list())))]


def one_hot(task: Task) -> Task:
    """``task`` with 0/1 columns and standardised numbers as inputs, if its inputs are codes of a table; else ``task`` itself."""
    reader = task.preprocessing
    if not isinstance(reader, TablePreprocessing) or reader.one_hot:
        return task
    layer = OneHot(reader.input_columns)
    splits = {name: replace(split, x=layer.whole(stacked(split.x))) for name, split in task.splits.items()}
    return replace(task, splits=splits, preprocessing=replace(reader, one_hot=True), categories=())
