"""A task from a table of one's own: a file, or a frame in memory.

Groups are label × every combination of the group columns' values that occurs: disjoint, so that methods which need groups can
be compared with those that do not. Without group columns the task has no groups. Group columns stay inputs unless they are
dropped. The label, split, id and weight columns are never inputs.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, final

import torch
from pydantic import Field

from umix.data.rows.file_source import FileSource
from umix.data.rows.row_notes import identifiers, small_groups
from umix.data.rows.row_roles import RowRoles
from umix.data.rows.table_file import as_frame
from umix.data.tables.preprocessing import TablePreprocessing
from umix.data.task import Task
from umix.errors import UserError, unknown

if TYPE_CHECKING:
    import polars


class TableOptions(RowRoles):
    """A table of your own (CSV, TSV, Parquet, JSON lines, Arrow): which column is what, and how it is divided."""

    drop: tuple[str, ...] = Field((), description="columns that are not inputs")

    def task(self, frame: "polars.DataFrame", title: str) -> Task:
        """The task in ``frame``."""
        inputs = self._inputs(frame, title)
        known = self.known_rows(frame)
        rows, table = known.rows, frame.select(inputs)
        others = [name for name in (*self.single, *self.drop) if name != self.id]
        preprocessing, x = TablePreprocessing.fit(table[rows["train"]], label=self.label, id=self.id, others=others)
        matrices = {name: x if name == "train" else preprocessing.transform(table[rows[name]]) for name in rows}
        splits = {name: known.split(name, torch.from_numpy(matrix)) for name, matrix in matrices.items()}
        notes = list(known.notes)
        if preprocessing.dropped:
            notes.append(f"Constant in training and left out: {', '.join(preprocessing.dropped)}.")
        notes += identifiers(table) + small_groups(splits)
        return Task(title, splits, known.classes, preprocessing=preprocessing, notes=tuple(notes))

    def _inputs(self, frame: "polars.DataFrame", title: str) -> list[str]:
        """The input columns; the others are checked to be there and to have one role."""
        self.check_roles(frame.columns, title)
        for name in self.drop:
            if name not in frame.columns:
                raise unknown(f"drop column of {title}", name, frame.columns)
        if not len(frame):
            raise UserError(f"{title} must have rows, but it is empty.")
        for name in set(self.drop).intersection(self.single):
            raise UserError(f"The column {name!r} must have one role, but it is dropped and another one.")
        for place, name in enumerate(frame.columns, start=1):
            if not name.strip():
                raise UserError(
                    f"Every column of {title} must have a name, but column {place} has none; name it or, if it holds row numbers, "
                    "write the table without them (pandas: index=False)."
                )
        inputs = [name for name in frame.columns if name not in {*self.single, *self.drop}]
        if not inputs:
            raise UserError(f"{title} must have an input column beside the label, but none is left.")
        return inputs


@final
class TableSource(TableOptions, FileSource):
    """A table of your own, in a file."""

    name: ClassVar[str] = "table"


def task_from_table(table: Any, *, label: str, groups: Any = None, **options: Any) -> Task:
    """The task in a table: a path, a polars or a pandas frame; ``options`` are those of ``TableOptions``.

    >>> import polars
    >>> frame = polars.DataFrame({"x": range(40), "sex": ["f", "m"] * 20, "y": ["no", "no", "yes", "yes"] * 10})
    >>> task_from_table(frame, label="y", groups="sex").groups
    ('no, f', 'no, m', 'yes, f', 'yes, m')
    """
    groups = groups or ()
    if isinstance(table, str | Path):
        source = TableSource(path=Path(table), label=label, groups=groups, **options)
        return replace(source.load(), kind=source.name, source=source)
    task = TableOptions(label=label, groups=groups, **options).task(as_frame(table), "table")
    return replace(task, kind=TableSource.name)
