"""One example as people see it: a picture, a text, the cells of its row, or its numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from umix.reports.page.pictures import thumbnail_of_array, thumbnail_of_file
from umix.reports.page.training_table import Source
from umix.reports.training_examples import Training

_LONGEST = 240  # letters of a text
_CELLS = 12  # of a row
_NUMBERS = 8  # of an input that is nothing else


@final
@dataclass(frozen=True)
class Shown:
    """What is known of how an example looks; ``name`` is its file, or its row."""

    name: str
    picture: str | None = None
    text: str | None = None
    cells: Mapping[str, str] = field(default_factory=dict)


@final
class Viewer:
    """Shows the examples of one run, from its own files and from the user's."""

    def __init__(self, training: Training, source: Source) -> None:
        self._training, self._source = training, source
        closer = training.closer
        self._x = None if closer is None else closer.x
        self._place = {} if closer is None else {int(index): place for place, index in enumerate(closer.index)}

    def show(self, index: int) -> Shown:
        """The training example ``index``."""
        training, rows = self._training, self._source.rows
        if training.file is not None:
            path = training.file[index]
            return Shown(path.rpartition("/")[2], picture=thumbnail_of_file(path))
        name = f"example {index}" if training.row is None else f"row {int(training.row[index]) + 1}"
        if rows is not None and self._source.text is not None:
            return Shown(name, text=shortened(rows[self._source.text][index]))
        if rows is not None:
            return Shown(name, cells=_cells(rows.select(self._source.inputs).row(index, named=True)))
        if self._x is None or index not in self._place:
            return Shown(name)
        x = self._x[self._place[index]]
        picture = thumbnail_of_array(x)
        if picture is not None:
            return Shown(name, picture=picture)
        return Shown(name, text=_numbers(x) if x.dtype.kind == "f" else None)  # numbers of words tell nobody anything


def shortened(text: Any, longest: int = _LONGEST) -> str:
    r"""The text in one line, cut where it is long.

    >>> shortened("a  b\nc", longest=4)
    'a b…'
    """
    line = " ".join(str(text).split())
    return line if len(line) <= longest else f"{line[: longest - 1].rstrip()}…"


def _cells(row: Mapping[str, Any]) -> dict[str, str]:
    cells = {name: "–" if value is None else shortened(value, 60) for name, value in list(row.items())[:_CELLS]}
    return cells | ({"…": f"{len(row) - _CELLS} more columns"} if len(row) > _CELLS else {})


def _numbers(x: np.ndarray) -> str:
    flat = x.ravel()
    more = f", … ({flat.size} numbers)" if flat.size > _NUMBERS else ""
    return ", ".join(f"{float(value):.3g}" for value in flat[:_NUMBERS]) + more
