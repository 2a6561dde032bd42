"""The training values of a column in a few bins: what is kept of them to tell whether new rows have moved."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Self, final

import numpy as np

from umix.data.tables.columns import Numbers, TableColumn

_TENTHS = np.arange(1, 10) / 10
_MOST_ROWS = 2**16  # training rows that are counted; more change no share by a percent
_MISSING = "missing"


@final
@dataclass(frozen=True)
class Bins:
    """How many training rows lie in each bin of a column.

    The bins of a category are its values. Those of a number or a date end at ``edges``, at most nine training values that cut the
    training rows into tenths; an edge belongs to the bin below it. The last bin has what is missing or was not seen in training.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, one: TableColumn, numbers: Numbers) -> Self | None:
        """The bins of the first numbers [n] that a column becomes in training; None for a long text, which has no such values."""
        if one.kind == "text":
            return None
        sample = numbers[:: -(-len(numbers) // _MOST_ROWS)]
        seen = sample[~np.isnan(sample)]
        edges: tuple[float, ...] = ()
        if one.kind != "category" and len(seen):
            edges = tuple(np.unique(np.quantile(seen, _TENTHS, method="lower")).tolist())
        return cls(edges, cls(edges, ()).count(one, sample))

    def count(self, one: TableColumn, numbers: Numbers) -> tuple[int, ...]:
        """How many of the ``numbers`` [n] lie in each bin."""
        missing = np.isnan(numbers)
        seen = numbers[~missing]
        places = seen if one.kind == "category" else np.searchsorted(np.array(self.edges, dtype=np.float32), seen)
        n_bins = len(one.values) if one.kind == "category" else len(self.edges) + 1
        return (*np.bincount(places.astype(np.int64), minlength=n_bins).tolist(), int(missing.sum()))

    def names(self, one: TableColumn) -> list[str]:
        """What each bin holds, in words."""
        if one.kind == "category":
            return [*one.values, f"{_MISSING} or new"]
        if not self.edges:
            return ["any", _MISSING]
        ends = list(self._ends(one))
        between = [f"{low} to {high}" for low, high in pairwise(ends)]
        return [f"up to {ends[0]}", *between, f"above {ends[-1]}", _MISSING]

    def _ends(self, one: TableColumn) -> Iterator[str]:
        for edge in self.edges:
            if one.kind == "date" and one.parts[:1] == ("days",):
                yield f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=edge):%Y-%m-%d}"
            else:
                yield f"{edge:.0f}" if abs(edge) >= 1000 else f"{edge:.3g}"
