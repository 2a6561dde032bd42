"""From the columns of a table to a float32 matrix: skrub decides by column, numbers are standardised, gaps filled.

Text that skrub reads as missing: empty, NA, N/A, nan, null, None, ?, … Numbers and dates are standardised with the training
split's mean and deviation, cut at ±10 deviations; a gap becomes the mean, and a column with gaps in training gets a second one
that marks them. Texts of at most 100 values become 0/1 columns, longer lists 30 numbers that keep similar texts near each other.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from umix.data.tables.column_kinds import FEW_VALUES, cast, kind_of
from umix.data.tables.skrub_state import load_state, save_state, steady
from umix.data.tables.table_reader import Matrix, TableReader
from umix.errors import UserError
from umix.run_folder import TABLE_INPUTS

if TYPE_CHECKING:
    import polars

_FORMAT = "umix table preprocessing 1"
_FARTHEST = 10.0


@final
class TablePreprocessing(TableReader):
    """Preprocessing fitted on the training rows of a table; ``state`` holds only types that skops can save."""

    def __init__(self, state: dict[str, Any]) -> None:
        TableReader.__init__(
            self,
            label=str(state["label"]),
            id=state["id"] or None,
            others=state.get("others", ()),
            kinds=state["kinds"],
            dropped=state["dropped"],
            values=state.get("values", {}),
        )
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
            cardinality_threshold=FEW_VALUES, high_cardinality=StringEncoder(random_state=0), drop_if_constant=True
        )
        with steady():
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

    def transform(self, frame: "polars.DataFrame") -> Matrix:
        """The matrix of ``frame``, [n, width]; unseen values of one-hot columns become 0, unreadable numbers are missing."""
        self.check_columns(frame)
        with steady():
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
        save_state(directory / TABLE_INPUTS, self._state)

    @classmethod
    def load(cls, directory: Path) -> Self:
        """What ``save`` wrote; a file with types that are not trusted is refused before any of its code could run."""
        return cls(load_state(directory / TABLE_INPUTS, format=_FORMAT))


def _matrix(table: "polars.DataFrame") -> Matrix:
    """The columns as float32, Fortran order, gaps and infinities NaN."""
    x: Matrix = table.to_numpy(order="fortran", writable=True).astype(np.float32, copy=False)
    x[np.isinf(x)] = np.nan
    return x
