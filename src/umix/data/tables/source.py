"""A task from a table of one's own: a file, or a frame in memory.

Groups are label × every combination of the group columns' values that occurs. They are disjoint, so that methods which need
groups can be compared with those that do not. Without group columns the task has no groups. Group columns stay inputs unless
they are dropped. The label, split, id and weight columns are never inputs.

Inputs are codes of categories and numbers, NaN where they are missing (``preprocessing.py``).
"""

from collections.abc import Collection
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, final

import torch
from pydantic import Field, field_serializer

from umix.data.checks.column_findings import constant_columns, identifiers
from umix.data.rows.column_kinds import read_commas
from umix.data.rows.known_rows import check_roles, known_rows, small_group_notes
from umix.data.rows.reader import NewInputs, Reader
from umix.data.rows.row_roles import RowRoles, require_label
from umix.data.rows.table_file import as_frame, category_columns, content_hash, read_table, table_title
from umix.data.tables.preprocessing import TablePreprocessing
from umix.data.task import Task, TaskSource
from umix.errors import UserError, unknown

if TYPE_CHECKING:
    import polars


@final
class TableSource(RowRoles, TaskSource):
    """A table of your own (CSV, TSV, Parquet, JSON lines, Arrow, Excel): which column is what, and how it is divided."""

    name: ClassVar[str] = "table"

    path: Path = Field(description="the file")
    drop: tuple[str, ...] = Field((), description="columns that are not inputs")

    @field_serializer("path")
    def _file_name(self, path: Path) -> str:
        return path.name  # the folder does not decide the run's numbers

    @property
    def title(self) -> str:
        return table_title(self.path)

    @cached_property
    def content(self) -> str:
        """The hash of the file."""
        return content_hash(self.path)

    def check_files(self) -> None:
        """Raise where the file is missing or unreadable, or where no label is named."""
        self.content  # noqa: B018 — reads the file
        require_label(self.label, self.path)

    def load(self, root: Path | None = None) -> Task:
        """The task in the file; ``root`` is not needed."""
        self.check_files()
        return self._task(read_table(self.path))

    def task(self, frame: "polars.DataFrame", *, as_categories: Collection[str] = ()) -> Task:
        """The task in ``frame``; numbers in the columns ``as_categories`` are categories."""
        return self._task(frame.clone(), as_categories)

    def _task(self, frame: "polars.DataFrame", as_categories: Collection[str] = ()) -> Task:
        """The task in ``frame``, out of which columns are taken when they are read: the table and codes need not fit at once."""
        inputs = self.input_columns(frame)
        rows = known_rows(self, frame)
        for name in set(frame.columns) - set(inputs):
            frame.drop_in_place(name)
        findings = identifiers(read_commas(frame))
        others = [name for name in (*self.single, *self.drop) if name != self.id]
        reader = TablePreprocessing.fit(
            frame, rows.rows["train"], label=self.label, id=self.id, others=others, as_categories=as_categories
        )
        codes = reader.take(frame, rows.rows)
        splits = {name: rows.split(name, torch.from_numpy(matrix)) for name, matrix in codes.items()}
        findings = [*constant_columns(reader.dropped), *findings]
        notes = [*rows.notes, *(finding.note for finding in findings), *small_group_notes(splits)]
        return Task(
            self.title,
            splits,
            rows.classes,
            preprocessing=reader,
            notes=tuple(notes),
            categories=reader.categories,
        )

    def labelled(self, reader: Reader, new: Any) -> "tuple[NewInputs, polars.DataFrame]":
        frame = reader.frame(new)
        return reader.inputs(frame), frame

    def input_columns(self, frame: "polars.DataFrame") -> list[str]:
        """The input columns; raises where a named column is missing or has two roles."""
        check_roles(self, frame.columns, self.title)
        for name in self.drop:
            if name not in frame.columns:
                raise unknown(f"drop column of {self.title}", name, frame.columns)
        if not len(frame):
            raise UserError(f"{self.title} must have rows, but it is empty.")
        for name in set(self.drop).intersection(self.single):
            raise UserError(f"The column {name!r} must have one role, but it is dropped and another one.")
        for place, name in enumerate(frame.columns, start=1):
            if not name.strip():
                raise UserError(
                    f"Every column of {self.title} must have a name, but column {place} has none; name it or, if it holds row "
                    "numbers, write the table without them (pandas: index=False)."
                )
        others = {*self.single, *self.drop}
        inputs = [name for name in frame.columns if name not in others]
        if not inputs:
            raise UserError(f"{self.title} must have an input column beside the label, but none is left.")
        return inputs


def task_from_table(table: Any, *, label: str, groups: Any = None, **options: Any) -> Task:
    """The task in a table.

    Args:
        table: the path of a file, a polars or a pandas frame.
        label: column of the class to predict.
        groups: a column or a list of columns; a group is a label with values of these.
        options: settings of a table, as ``split="part"``, ``drop=["name"]`` or ``val_share=0.1``.

    >>> import polars
    >>> frame = polars.DataFrame({"x": range(40), "sex": ["f", "m"] * 20, "y": ["no", "no", "yes", "yes"] * 10})
    >>> task_from_table(frame, label="y", groups="sex").groups
    ('no, f', 'no, m', 'yes, f', 'yes, m')

    """
    if isinstance(table, str | Path):
        source = TableSource(path=Path(table), label=label, groups=groups or (), **options)
        return replace(source.load(), kind=source.name, source=source)
    made = TableSource(path=Path("table"), label=label, groups=groups or (), **options)  # the path is only a title
    task = made.task(as_frame(table), as_categories=category_columns(table))
    return replace(task, kind=TableSource.name)
