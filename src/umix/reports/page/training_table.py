"""The user's own file that a run was trained on, if it is still there and still the same: rows for people to look at."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

from umix.bench.runs.record import RunRecord
from umix.data.rows.table_file import SUFFIXES, content_hash, read_table
from umix.errors import UserError
from umix.reports.training_examples import Training

if TYPE_CHECKING:
    import polars


@final
@dataclass(frozen=True, eq=False)
class Source:
    """The training rows of the table a run was trained on, or in words why they cannot be shown.

    ``inputs`` are the columns that the net saw; ``text`` is the one column that holds texts, where the task is about texts.
    """

    rows: "polars.DataFrame | None"
    inputs: tuple[str, ...] = ()
    text: str | None = None
    missing: str | None = None


def source_of(record: RunRecord, training: Training) -> Source:
    """The rows behind the training examples of ``record``."""
    task = record.plan.get("task", {})
    if training.row is None or "path" not in task:
        return Source(None)
    path = Path(record.task)
    named = task.get("rows") and path.with_name(task["rows"])  # arrays: a table beside them says the rest
    table = Path(named) if named else path
    if table.suffix.lower() not in SUFFIXES:
        return Source(None)
    if not table.exists():
        return Source(None, missing=f"The rows are not shown: {table} is not there any more.")
    try:
        if content_hash(table) not in str(task.get("content", "")):
            return Source(None, missing=f"The rows are not shown: {table} has changed since the run.")
        frame = read_table(table)
    except UserError as error:
        return Source(None, missing=f"The rows are not shown: {error}")
    if len(frame) <= int(training.row.max(initial=-1)):
        return Source(None, missing=f"The rows are not shown: {table} has changed since the run.")
    aside = {task.get(role) for role in ("label", "split", "id", "weight")} | set(task.get("drop") or ())
    inputs = tuple(name for name in frame.columns if name not in aside)
    return Source(frame[training.row], inputs, task.get("text"))
