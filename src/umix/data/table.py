"""A task from a table of one's own: a file, or a frame in memory.

Groups are label × every combination of the group columns' values that occurs: disjoint, so that methods which need groups can
be compared with those that do not. Without group columns the task has no groups. Group columns stay inputs unless they are
dropped. The label, split and id columns are never inputs.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, final

import torch
from pydantic import Field, field_serializer, model_validator

from umix.data.groups import Groups
from umix.data.preprocessing import TablePreprocessing
from umix.data.table_file import as_frame, column_names, content_hash
from umix.data.table_notes import check_classes, identifiers, small_groups
from umix.data.table_roles import Rows, encode_attribute, encode_labels, named, split_at_random, split_by_column
from umix.data.task import Split, Task, TaskSource
from umix.errors import UserError, unknown
from umix.settings import Settings

if TYPE_CHECKING:
    import polars

_MOST_GROUPS = 1000  # membership is a matrix with a column for each


class TableOptions(Settings):
    """A table of your own (CSV, TSV, Parquet, JSON lines, Arrow): which column is what, and how it is divided."""

    label: str = Field(description="column of the class to predict")
    groups: tuple[str, ...] = Field(
        (), description="columns whose values, with the label, make the groups; none: no groups"
    )
    split: str | None = Field(
        None, description="column that says train, val or test (0, 1, 2); none: divided at random"
    )
    drop: tuple[str, ...] = Field((), description="columns that are not inputs")
    id: str | None = Field(None, description="column that names each row: not an input, carried into predictions")
    val_share: float = Field(0.2, gt=0, lt=0.5, description="share of val where the table does not say")
    test_share: float = Field(0.2, gt=0, lt=0.5, description="share of test where the table does not say")
    data_seed: int = Field(0, ge=0, description="seed of the random split, independent of the run's seed")

    @model_validator(mode="before")
    @classmethod
    def _several(cls, values: dict[str, Any]) -> dict[str, Any]:
        """``a,b`` is a list of columns."""
        lists = {
            field: tuple(name.strip() for name in values[field].split(",") if name.strip())
            for field in ("groups", "drop")
            if isinstance(values.get(field), str)
        }
        return {**values, **lists}

    def task(self, frame: "polars.DataFrame", title: str) -> Task:
        """The task in ``frame``."""
        inputs = self._inputs(frame, title)
        y, classes = encode_labels(frame[self.label])
        groups, notes = self._groups(frame, y, classes), []
        stratum = y if groups is None else groups.ids.numpy()
        rows = None if self.split is None else split_by_column(frame[self.split])
        if rows is None or "val" not in rows:
            shares = {"val_share": self.val_share, "test_share": self.test_share, "seed": self.data_seed}
            if rows is not None:
                notes.append(
                    f"{self.split!r} names no val: {self.val_share:.0%} of train was taken, stratified, at random."
                )
            rows = split_at_random(stratum, given=rows, **shares)  # type: ignore[arg-type]
        notes += check_classes(rows, y, classes)
        table = frame.select(inputs)
        preprocessing, x = TablePreprocessing.fit(table[rows["train"]], label=self.label, id=self.id)
        matrices = {name: x if name == "train" else preprocessing.transform(table[rows[name]]) for name in rows}
        if preprocessing.dropped:
            notes.append(f"Constant in training and left out: {', '.join(preprocessing.dropped)}.")
        notes += identifiers(table)
        labels = torch.from_numpy(y)
        splits = {}
        for name, matrix in matrices.items():
            index = torch.from_numpy(rows[name])
            known = Groups(torch.zeros(len(index), 0, dtype=torch.bool), ()) if groups is None else groups.rows(index)
            splits[name] = Split(torch.from_numpy(matrix), labels[index], known, origin=rows[name])
        notes += small_groups(splits)
        return Task(title, splits, classes, preprocessing=preprocessing, notes=tuple(notes))

    def _inputs(self, frame: "polars.DataFrame", title: str) -> list[str]:
        """The input columns; the others are checked to be there and to have one role."""
        roles = {
            "label": (self.label,),
            "groups": self.groups,
            "split": (self.split,),
            "id": (self.id,),
            "drop": self.drop,
        }
        for role, names in roles.items():
            for name in names:
                if name is not None and name not in frame.columns:
                    raise unknown(f"{role} column of {title}", name, frame.columns)
        single = [name for name in (self.label, self.split, self.id) if name is not None]
        for name in single:
            if single.count(name) > 1 or name in self.groups:
                raise UserError(
                    f"The column {name!r} must have one role among label, groups, split and id; it has two."
                )
        if not len(frame):
            raise UserError(f"{title} must have rows, but it is empty.")
        inputs = [name for name in frame.columns if name not in {*single, *self.drop}]
        if not inputs:
            raise UserError(f"{title} must have an input column beside the label, but none is left.")
        return inputs

    def _groups(self, frame: "polars.DataFrame", y: Rows, classes: tuple[str, ...]) -> Groups | None:
        if not self.groups:
            return None
        attribute, names = encode_attribute([frame[name] for name in self.groups])
        if len(classes) * len(names) > _MOST_GROUPS:
            raise UserError(
                f"--groups must make at most {_MOST_GROUPS} groups, got {len(classes)} classes × {len(names)} values of "
                f"{', '.join(self.groups)}; name fewer columns or cut them into ranges."
            )
        labels = [named(frame[self.label], name) for name in classes]
        return Groups.cells(torch.from_numpy(y), torch.from_numpy(attribute), labels=labels, attributes=names)


@final
class TableSource(TableOptions, TaskSource):
    """The table in a file."""

    name: ClassVar[str] = "table"

    path: Path
    content: str = Field("", description="hash of the file, which decides the run's key")

    @model_validator(mode="before")
    @classmethod
    def _know_the_file(cls, values: dict[str, Any]) -> dict[str, Any]:
        path = Path(values["path"])
        content = content_hash(path)
        if not values.get("label"):
            raise UserError(
                f"{path.name} needs --label with the column of the class to predict; it has {', '.join(column_names(path))}."
            )
        return {**values, "path": path, "content": content}

    @field_serializer("path")
    def _file_name(self, path: Path) -> str:
        return path.name  # where the file lies decides nothing

    @property
    def title(self) -> str:
        return self.path.stem

    def load(self, root: Path | None = None) -> Task:
        """The task; ``root`` is not needed."""
        return self.task(as_frame(self.path), self.title)


def task_from_table(table: Any, *, label: str, groups: Any = None, **options: Any) -> Task:
    """The task in a table: a path, a polars or a pandas frame; ``options`` are those of ``TableOptions``.

    >>> import polars
    >>> frame = polars.DataFrame({"x": range(40), "sex": ["f", "m"] * 20, "y": ["no", "no", "yes", "yes"] * 10})
    >>> task_from_table(frame, label="y", groups="sex").groups
    ('no, f', 'no, m', 'yes, f', 'yes, m')
    """
    title = Path(table).stem if isinstance(table, str | Path) else "table"
    return TableOptions(label=label, groups=groups or (), **options).task(as_frame(table), title)
