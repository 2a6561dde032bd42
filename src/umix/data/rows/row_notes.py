"""Notes for people about how their table was read, and checks of its splits."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from umix.data.rows.role_columns import Rows
from umix.data.task import Split
from umix.errors import UserError

if TYPE_CHECKING:
    import polars

_FEW = 10  # examples below which a group's rate says little


def check_classes(rows: dict[str, Rows], y: Rows, classes: tuple[str, ...]) -> list[str]:
    """Notes about classes without rows in val or test; raises where a class has no training row."""
    notes = []
    for name, index in rows.items():
        if not len(index):
            raise UserError(f"The split {name} must have rows, but it is empty; the table is too small to be divided.")
        absent = [classes[c] for c in np.flatnonzero(np.bincount(y[index], minlength=len(classes)) == 0)]
        if absent and name == "train":
            raise UserError(f"The split train must have every class, but it has no row of {absent[0]!r}.")
        if absent:
            more = f" and {len(absent) - 3} more" if len(absent) > 3 else ""
            notes.append(f"{name} has no row of {', '.join(map(repr, absent[:3]))}{more}: no rate is known for it.")
    return notes


def identifiers(table: "polars.DataFrame") -> list[str]:
    """A note for every input that seems to be a row identifier."""
    n = len(table)
    names = [c.name for c in table.iter_columns() if n > 100 and not c.dtype.is_float() and c.n_unique() == n]
    return [f"{name!r} is different in every row: if it only names the row, make it the id column." for name in names]


def small_groups(splits: Mapping[str, Split]) -> list[str]:
    """A note if some groups are too small to have a rate worth reading."""
    names = splits["test"].groups.names
    few = int(((splits["val"].groups.sizes < _FEW) | (splits["test"].groups.sizes < _FEW)).sum())
    if not few:
        return []
    return [
        f"{few} of {len(names)} groups have fewer than {_FEW} rows in val or test: their rates say little, and an epoch "
        "selected by the worst of them too; use fewer group columns or the selection rule worst_class."
    ]
