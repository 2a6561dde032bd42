"""The user's own file that a run was trained on, if it is still there and still the same: rows for people to look at."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np

from umix.bench.runs.record import RunRecord
from umix.data.rows.column_kinds import is_plain, read_commas
from umix.data.rows.table_file import SUFFIXES, content_hash, read_table, table_suffix
from umix.errors import Setting, UserError, unknown

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
    try:
        frame = None if row is None else table_of(record, row)
    except UserError as error:
        return Source(None, missing=f"The rows are not shown: {error}")
    if frame is None:
        return Source(None)
    task = record.plan["task"]
    aside = {task.get(role) for role in ("label", "split", "id", "weight")}
    dropped = aside | set(task.get("drop") or ())
    return Source(
        frame,
        inputs=tuple(name for name in frame.columns if name not in dropped),
        groups=tuple(name for name in task.get("groups") or () if name in frame.columns and name not in aside),
        text=task.get("text"),
    )


def table_of(record: RunRecord, row: np.ndarray) -> "polars.DataFrame | None":
    """The whole table that has the examples of ``record`` in the rows ``row``; None where they are not of a table.

    UserError where its file has changed or cannot be read.
    """
    task = record.plan.get("task", {})
    if "path" not in task:
        return None
    path = Path(record.task)
    named = task.get("rows") and path.with_name(task["rows"])  # arrays: labels and groups are in a table beside them
    table = Path(named) if named else path
    if table_suffix(table) not in SUFFIXES:
        return None
    if not table.exists():
        raise UserError(f"{table} is not there any more.")
    content = content_hash(table)
    frame = _read_once(table.resolve(), content) if content in str(task.get("content", "")) else None
    if frame is None or len(frame) <= int(row.max(initial=-1)):
        raise UserError(f"{table} has changed since the run.")
    return frame


def with_id(examples: "polars.DataFrame", record: RunRecord, column: str | None) -> "polars.DataFrame":
    """``examples`` with the values of ``column`` of the run's table after the first column; without a name as they are."""
    if column is None:
        return examples
    rule = (Setting("id", column), " must be a column of the run's table, but ")
    try:
        table = table_of(record, examples["row"].to_numpy()) if "row" in examples.columns else None
    except UserError as error:
        raise UserError(*rule, error) from None
    if table is None:
        raise UserError(*rule, "the run was made of no file with a table; join by the first column instead.")
    if column not in table.columns:
        raise unknown("column of the run's table", column, table.columns)
    if not is_plain(table[column].dtype):
        raise UserError(Setting("id", column), f" must hold numbers, texts or dates, got {table[column].dtype}.")
    name = f"{column} (id)" if column in examples.columns else column
    return examples.clone().insert_column(1, table[column][examples["row"]].alias(name))


@lru_cache(maxsize=2)
def _read_once(path: Path, content: str) -> "polars.DataFrame":
    """The table at ``path``, whose file has the hash ``content``: the runs of a report share one reading of it."""
    return read_commas(read_table(path))
