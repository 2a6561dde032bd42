"""What the readers of new rows for runs on tables share: which columns must be there, and what is said about odd values."""

import abc
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from umix.data.rows.reader import NewInputs, Reader
from umix.data.rows.table_file import as_frame
from umix.data.tables.column_kinds import cast, is_missing
from umix.errors import UserError

if TYPE_CHECKING:
    import polars

_SHOWN = 3  # values in a note
Matrix = NDArray[np.float32]


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
    ) -> None:
        self.label = label
        self.id = id
        self.others = list(others)  # columns of the training table that have another role or were dropped by the user
        self.kinds = dict(kinds)  # what each input column is read as, in order
        self.dropped = sorted(dropped)  # input columns that are left out: constant or empty in training
        self.values = dict(values)  # the training values of each column that has few of them

    @property
    def columns(self) -> list[str]:
        """The input columns, in order."""
        return list(self.kinds)

    @abc.abstractmethod
    def transform(self, frame: "polars.DataFrame") -> Matrix:
        """The matrix of ``frame``, [n, width]; raises where columns of training are missing."""

    def inputs(self, new: Any) -> NewInputs:
        """The rows of a table (a path, a polars or a pandas frame): columns of training must be there, others are ignored."""
        import torch

        frame = as_frame(new)
        x = torch.from_numpy(self.transform(frame))
        ids = {self.id: frame[self.id]} if self.id in frame.columns else {}
        return NewInputs(x, ids=ids, notes=tuple(self._notes(frame)))

    def check_columns(self, frame: "polars.DataFrame") -> None:
        """Raise where ``frame`` has no rows, or not the columns of training; those that are left out are not missed."""
        missing = [name for name in self.columns if name not in frame.columns and name not in self.dropped]
        if missing:
            raise UserError(
                f"The table must have the columns the model was trained with, but {', '.join(map(repr, missing))} "
                f"{'is' if len(missing) == 1 else 'are'} missing."
            )
        if not len(frame):
            raise UserError("The table must have rows, but it is empty.")

    def unreadable(self, frame: "polars.DataFrame") -> dict[str, int]:
        """How many values of each column cannot be read as its kind in training, and are treated as missing."""
        lost = {}
        for name, kind in self.kinds.items():
            if name in frame.columns:
                read = cast(frame, {name: kind})[name]
                lost[name] = int((read.is_null() & ~self._missing(frame[name])).sum())
        return {name: count for name, count in lost.items() if count}

    def unseen(self, frame: "polars.DataFrame") -> dict[str, tuple[int, list[str]]]:
        """For columns of few values: how many values did not occur in training, and which; missing ones are not counted."""
        found = {}
        for name, values in self.values.items():
            if name not in frame.columns:
                continue
            text = self._text(frame[name])
            new = text.filter(~text.is_in(list(values)) & ~is_missing(text))
            if len(new):
                found[name] = (len(new), sorted(new.unique().to_list()))
        return found

    def _missing(self, column: "polars.Series") -> "polars.Series":
        """Which values were missing before they were read as the kind of training."""
        return column.is_null()

    def _text(self, column: "polars.Series") -> "polars.Series":
        """The values as texts, in which they are compared with those of training."""
        return cast(column.to_frame(), {column.name: "text"})[column.name]

    def _notes(self, frame: "polars.DataFrame") -> list[str]:
        """Notes about columns that training did not have, odd values, and a missing id column."""
        known = {*self.columns, self.id, self.label, *self.others}
        extra = [name for name in frame.columns if name not in known]
        notes = [f"Ignored columns that the model was not trained with: {', '.join(extra)}."] if extra else []
        for name, count in self.unreadable(frame).items():
            notes.append(f"{count} values of {name!r} are not what they were in training and count as missing.")
        for name, (count, values) in self.unseen(frame).items():
            shown = ", ".join(map(repr, values[:_SHOWN])) + (", …" if len(values) > _SHOWN else "")
            notes.append(
                f"{count} values of {name!r} were never seen in training and count as none of its values: {shown}."
            )
        if self.id and self.id not in frame.columns:
            notes.append(f"The table has no id column {self.id!r}: predictions are in the order of its rows.")
        return notes
