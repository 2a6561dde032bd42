"""From the columns of a table to a float32 matrix: skrub decides by column, numbers are standardised, gaps filled.

Text that skrub reads as missing: empty, NA, N/A, nan, null, None, ?, … Numbers and dates are standardised with the training
split's mean and deviation, cut at ±10 deviations; a gap becomes the mean, and a column with gaps in training gets a second one
that marks them. Texts of at most 100 values become 0/1 columns, longer lists 30 numbers that keep similar texts near each other.
"""

import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
from numpy.typing import NDArray

from umix.data.rows.reader import NewInputs, Reader
from umix.data.rows.table_file import as_frame
from umix.data.tables.column_kinds import cast, kind_of
from umix.data.tables.skops_types import TRUSTED
from umix.errors import UserError
from umix.files import write_whole
from umix.run_folder import TABLE_INPUTS

if TYPE_CHECKING:
    import polars

_FORMAT = "umix table preprocessing 1"
_ONE_HOT, _FARTHEST = 100, 10.0
_SHOWN = 3  # values in a note
_GAPS = ("?", "...", "null", "NULL", "nan", "NaN", "NA", "N/A", "n/a", "#NA", "#N/A", "<NA>", "none", "None")
Matrix = NDArray[np.float32]


@final
class TablePreprocessing(Reader):
    """Preprocessing fitted on the training rows of a table; ``state`` holds only types that skops can save."""

    def __init__(self, state: dict[str, Any]) -> None:
        self._state = state

    @classmethod
    def fit(
        cls, frame: "polars.DataFrame", *, label: str, id: str | None, others: Sequence[str] = ()
    ) -> tuple[Self, Matrix]:
        """The preprocessing of the input columns ``frame`` and their matrix, [n, width]; ``others`` have another role."""
        import polars
        from skrub import StringEncoder, TableVectorizer

        kinds = {column.name: kind_of(column) for column in frame.iter_columns()}
        vectorizer = TableVectorizer(
            cardinality_threshold=_ONE_HOT, high_cardinality=StringEncoder(random_state=0), drop_if_constant=True
        )
        with _steady():
            table = vectorizer.fit_transform(cast(frame, kinds))
        x = _matrix(table)
        if not x.shape[1]:
            raise UserError(f"The inputs {', '.join(kinds)} must differ between training rows, but all are constant.")
        one_hot = set(vectorizer.kind_to_columns_["low_cardinality"])
        origin = [vectorizer.output_to_input_[name] for name in table.columns]
        scaled = np.array([i for i, column in enumerate(origin) if column not in one_hot], dtype=np.int64)
        gaps = np.isnan(x[:, scaled]).any(axis=0)
        first = {origin[i]: int(i) for i in scaled[gaps][::-1]}  # one mark per column of the table, not per output
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # where all values are missing the mean is NaN
            mean = np.nan_to_num(np.nanmean(x[:, scaled], axis=0, dtype=np.float64))
            deviation = np.nan_to_num(np.nanstd(x[:, scaled], axis=0, dtype=np.float64))
        state = {
            "format": _FORMAT,
            "label": label,
            "id": id or "",
            "others": list(others),
            "kinds": kinds,
            "dropped": sorted(set(kinds) - set(origin)),
            "values": {name: frame[name].cast(polars.String).unique().drop_nulls().to_list() for name in one_hot},
            "vectorizer": vectorizer,
            "scaled": scaled,
            "marked": np.array(sorted(first.values()), dtype=np.int64),
            "mean": mean,
            "deviation": np.where(deviation > 0, deviation, 1.0),
        }
        fitted = cls(state)
        return fitted, fitted._finish(x)

    @property
    def columns(self) -> list[str]:
        """The input columns, in order."""
        return list(self._state["kinds"])

    @property
    def dropped(self) -> list[str]:
        """Input columns that are left out because they are constant or empty in training."""
        return list(self._state["dropped"])

    @property
    def label(self) -> str:
        return str(self._state["label"])

    @property
    def id(self) -> str | None:
        return self._state["id"] or None

    def inputs(self, new: Any) -> NewInputs:
        """The rows of a table (a path, a polars or a pandas frame): columns of training must be there, others are ignored."""
        import torch

        frame = as_frame(new)
        x = torch.from_numpy(self.transform(frame))
        ids = {self.id: frame[self.id]} if self.id in frame.columns else {}
        return NewInputs(x, ids=ids, notes=tuple(self._notes(frame)))

    def _notes(self, frame: "polars.DataFrame") -> list[str]:
        """Notes about columns that training did not have, and a missing id column."""
        known = {*self.columns, self.id, self.label, *self._state.get("others", ())}
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

    def unreadable(self, frame: "polars.DataFrame") -> dict[str, int]:
        """How many values of each column cannot be read as its kind in training, and are treated as missing."""
        kinds = {name: kind for name, kind in self._state["kinds"].items() if name in frame.columns}
        read = cast(frame, kinds)
        lost = {name: read[name].null_count() - frame[name].null_count() for name in kinds}
        return {name: count for name, count in lost.items() if count}

    def unseen(self, frame: "polars.DataFrame") -> dict[str, tuple[int, list[str]]]:
        """For one-hot columns: how many values did not occur in training, and which; missing values are not counted."""
        import polars

        found = {}
        for name, values in self._state.get("values", {}).items():
            if name not in frame.columns:
                continue
            text = frame[name].cast(polars.String, strict=False)
            new = text.filter(~text.is_in([*values, *_GAPS]) & (text.str.strip_chars() != ""))
            if len(new):
                found[name] = (len(new), sorted(new.unique().to_list()))
        return found

    def transform(self, frame: "polars.DataFrame") -> Matrix:
        """The matrix of ``frame``, [n, width]; unseen values of one-hot columns become 0, unreadable numbers are missing."""
        missing = [name for name in self.columns if name not in frame.columns and name not in self.dropped]
        if missing:
            raise UserError(
                f"The table must have the columns the model was trained with, but {', '.join(map(repr, missing))} "
                f"{'is' if len(missing) == 1 else 'are'} missing."
            )
        if not len(frame):
            raise UserError("The table must have rows, but it is empty.")
        with _steady():
            return self._finish(_matrix(self._state["vectorizer"].transform(cast(frame, self._state["kinds"]))))

    def _finish(self, x: Matrix) -> Matrix:
        """Standardise and fill ``x`` in place and mark its gaps."""
        marks = np.isnan(x[:, self._state["marked"]]).astype(np.float32)
        for place, mean, deviation in zip(
            self._state["scaled"], self._state["mean"], self._state["deviation"], strict=True
        ):
            column = x[:, place]
            column -= mean
            column /= deviation
            np.clip(column, -_FARTHEST, _FARTHEST, out=column)
            column[np.isnan(column)] = 0.0  # the mean
        return np.ascontiguousarray(np.concatenate([x, marks], axis=1) if marks.shape[1] else x)

    def save(self, directory: Path) -> None:
        """Write everything into ``directory`` without pickle."""
        import skops.io

        content = skops.io.dumps(self._state, compression=zipfile.ZIP_DEFLATED, compresslevel=1)
        write_whole(directory / TABLE_INPUTS, content)

    @classmethod
    def load(cls, directory: Path) -> Self:
        """What ``save`` wrote; a file with types that are not trusted is refused before any of its code could run."""
        import skops.io

        path = directory / TABLE_INPUTS
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise UserError(f"{directory} must hold a run on a table, but it has no {TABLE_INPUTS}.") from None
        try:
            foreign = sorted(set(skops.io.get_untrusted_types(data=content)) - TRUSTED)
            if foreign:
                raise UserError(f"{path} must hold nothing but a table's preprocessing, but it holds {foreign[0]}.")
            state = skops.io.loads(content, trusted=sorted(TRUSTED))
        except (zipfile.BadZipFile, KeyError, ValueError, TypeError, EOFError) as error:
            if isinstance(error, UserError):
                raise
            raise UserError(
                f"{path} must be a whole file that umix wrote, but it cannot be read ({' '.join(str(error).split())})."
            ) from None
        if not isinstance(state, dict) or state.get("format") != _FORMAT:
            raise UserError(f"{path} must be a preprocessing file of this version of umix; run again.")
        return cls(state)


def _matrix(table: "polars.DataFrame") -> Matrix:
    """The columns as float32, Fortran order, gaps and infinities NaN."""
    x: Matrix = table.to_numpy(order="fortran", writable=True).astype(np.float32, copy=False)
    x[np.isinf(x)] = np.nan
    return x


@contextmanager
def _steady() -> Iterator[None]:
    """Inside the block skrub warns about nothing (unseen texts, date formats) and computes in one thread.

    With several threads the decomposition of texts sums in another order, which changes the last digits.
    """
    from threadpoolctl import threadpool_limits

    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", UserWarning)
        yield
