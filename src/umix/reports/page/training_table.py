"""The user's own file that a run was trained on, if it is still there and still the same: rows for people to look at."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np

from umix.bench.runs.record import RunRecord
from umix.data.rows.table_file import SUFFIXES, content_hash, read_table
from umix.errors import UserError

if TYPE_CHECKING:
    import polars


@final
@dataclass(frozen=True, eq=False)
class Source:
    """The whole table that a run was made of, or in words why its rows cannot be shown.

    ``inputs`` are the columns that the net saw and ``groups`` those that make the groups; a column may be both. ``text`` is the
    one column that holds texts, where the task is about texts. The label, split, id and weight columns are in none of them.
    """

    table: "polars.DataFrame | None"
    inputs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    text: str | None = None
    missing: str | None = None

    @property
    def by_columns(self) -> bool:
        """Whether examples are rows whose columns can describe them."""
        return self.table is not None and self.text is None


def source_of(record: RunRecord, row: np.ndarray | None) -> Source:
    """The table behind the examples of ``record`` that lie in the rows ``row`` of it."""
    task = record.plan.get("task", {})
    if row is None or "path" not in task:
        return Source(None)
    path = Path(record.task)
    named = task.get("rows") and path.with_name(task["rows"])  # arrays: labels and groups are in a table beside them
    table = Path(named) if named else path
    if table.suffix.lower() not in SUFFIXES:
        return Source(None)
    if not table.exists():
        return Source(None, missing=f"The rows are not shown: {table} is not there any more.")
    changed = Source(None, missing=f"The rows are not shown: {table} has changed since the run.")
    try:
        content = content_hash(table)
        if content not in str(task.get("content", "")):
            return changed
        frame = _read_once(table.resolve(), content)
    except UserError as error:
        return Source(None, missing=f"The rows are not shown: {error}")
    if len(frame) <= int(row.max(initial=-1)):
        return changed
    aside = {task.get(role) for role in ("label", "split", "id", "weight")}
    dropped = aside | set(task.get("drop") or ())
    return Source(
        frame,
        inputs=tuple(name for name in frame.columns if name not in dropped),
        groups=tuple(name for name in task.get("groups") or () if name in frame.columns and name not in aside),
        text=task.get("text"),
    )


@lru_cache(maxsize=2)
def _read_once(path: Path, content: str) -> "polars.DataFrame":
    """The table at ``path``, whose file has the hash ``content``: the runs of a report share one reading of it."""
    return read_table(path)
