"""What the readers of new rows for runs on tables share: which columns must be there, and what is said about odd values."""

import abc
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from umix.data.rows.column_kinds import ColumnType, as_kind, is_missing, is_plain
from umix.data.rows.new_notes import Note
from umix.data.rows.reader import NewInputs, Reader
from umix.data.rows.table_blocks import table_blocks
from umix.data.rows.table_file import as_frame
from umix.errors import UserError

if TYPE_CHECKING:
    import polars

Matrix = NDArray[np.float32]
Unseen = dict[str, "polars.Series"]


class TableReader(Reader, abc.ABC):
    """A preprocessing fitted on the training rows of a table; subclasses say how values become numbers."""

    def __init__(
        self,
        *,
        label: str,
        id: str | None,
        others: Sequence[str],
        kinds: Mapping[str, str],
        dropped: Sequence[str],
        values: Mapping[str, Sequence[str]],
        types: Mapping[str, ColumnType],
    ) -> None:
        self.label = label
        self.id = id
        self.others = list(others)  # columns of the training table that have another role or were dropped by the user
        self.kinds = dict(kinds)  # what each input column is read as, in order
        self.dropped = sorted(dropped)  # input columns that are left out: constant or empty in training
        self.types = dict(types)  # what each input column is to people
        self.values = dict(values)  # the training values of each column that has few of them

    @property
    def columns(self) -> list[str]:
        """The input columns, in order."""
        return list(self.kinds)

    @abc.abstractmethod
    def transform(self, frame: "polars.DataFrame") -> Matrix:
        """The matrix of ``frame``, [n, width]; raises where columns of training are missing."""

    def read(self, frame: "polars.DataFrame") -> tuple[Matrix, Unseen]:
        """What ``transform`` gives, and what ``unseen`` does; the two have work in common."""
        return self.transform(frame), self.unseen(frame)

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
        import torch

        x, unseen = self.read(frame)
        ids = {self.id: frame[self.id]} if self.id in frame.columns else {}
        return NewInputs(torch.from_numpy(x), ids=ids, notes=tuple(self._notes(frame, unseen)))

    def check_columns(self, frame: "polars.DataFrame") -> None:
        """Raise where ``frame`` has no rows, or not the columns of training; those that are left out are not missed."""
        there, dropped = frame.schema, set(self.dropped)  # looked up once: a table may have thousands of columns
        missing = [name for name in self.columns if name not in there and name not in dropped]
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

    def unreadable(self, frame: "polars.DataFrame") -> dict[str, int]:
        """How many values of each column cannot be read as its kind in training, and are treated as missing."""
        lost, there = {}, set(frame.columns)
        for name, kind in self.kinds.items():
            if name in there:
                read = as_kind(frame[name], kind)
                if read.null_count() > frame[name].null_count():
                    lost[name] = int((read.is_null() & ~self._missing(frame[name])).sum())
        return {name: count for name, count in lost.items() if count}

    def unseen(self, frame: "polars.DataFrame") -> Unseen:
        """The values of columns of few values that did not occur in training, as often as they occur; missing ones are left out."""
        found: Unseen = {}
        there = set(frame.columns)
        for name, values in self.values.items():
            if name in there:
                text = self._text(frame[name])
                new = text.filter(~text.is_in(list(values)) & ~is_missing(text))
                found |= {name: new} if len(new) else {}
        return found

    def _missing(self, column: "polars.Series") -> "polars.Series":
        """Which values were missing before they were read as the kind of training."""
        return is_missing(column) if self.kinds[column.name] == "decimal_comma" else column.is_null()

    def _text(self, column: "polars.Series") -> "polars.Series":
        """The values as texts, in which they are compared with those of training."""
        return as_kind(column, "text")

    def _notes(self, frame: "polars.DataFrame", unseen: Unseen) -> list[Note | str]:
        """Notes about columns that training did not have, odd values, and a missing id column."""
        known = {*self.columns, self.id, self.label, *self.others}
        extra = [name for name in frame.columns if name not in known]
        notes: list[Note | str] = []
        if extra:
            notes.append(f"Ignored columns that the model was not trained with: {', '.join(extra)}.")
        for name, count in self.unreadable(frame).items():
            text = f"{{count}} values of {name!r} are not what they were in training and count as missing."
            notes.append(Note(text, count))
        for name, values in unseen.items():
            text = (
                f"{{count}} values of {name!r} were never seen in training and count as none of its values: {{values}}."
            )
            notes.append(Note(text, len(values), values=tuple(sorted(values.unique().to_list()))))
        if self.id and self.id not in frame.columns:
            notes.append(f"The table has no id column {self.id!r}: predictions are in the order of its rows.")
        return notes
