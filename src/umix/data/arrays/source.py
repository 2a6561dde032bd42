"""A task from arrays of one's own: features that somebody computed, or images, with a row for each example.

An .npz file holds the inputs beside the labels, groups and splits; an .npy file holds the inputs alone, and a table says the rest,
row by row in the same order. Inputs are float32 [n, ...] in the end; pixels [n, height, width, 3] become [n, 3, height, width].
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, final

import numpy as np
from pydantic import Field, field_serializer, model_validator

from umix.data.arrays.array_file import Array, array_names, columns, read_array
from umix.data.arrays.preprocessing import ArrayPreprocessing, check_shape, in_memory
from umix.data.rows.row_notes import small_groups
from umix.data.rows.row_roles import RowRoles
from umix.data.rows.table_file import as_frame, column_names, content_hash, file_hash
from umix.data.task import Task, TaskSource
from umix.errors import UserError


class ArrayOptions(RowRoles):
    """Arrays of your own (.npz, or .npy and a table): which array is what, and how the rows are divided."""

    x: str = Field("x", description="array of the inputs, [rows, ...]")
    standardize: bool = Field(
        True, description="inputs minus their training mean, divided by their deviation; of images by channel"
    )

    def task(self, values: Array, frame: Any, title: str, fingerprint: str) -> Task:
        """The task of the inputs ``values``, of which the table ``frame`` says the rest."""
        known = self.known_rows(frame)
        preprocessing = ArrayPreprocessing.fit(
            values, known.rows["train"], x=self.x, standardize=self.standardize, id=self.id
        )
        splits = {}
        for name, rows in known.rows.items():
            x, change = preprocessing.stored(values, rows, fingerprint)
            splits[name] = known.split(name, x, transform=change)
        notes = known.notes + tuple(small_groups(splits))
        return Task(title, splits, known.classes, preprocessing=preprocessing, notes=notes)


@final
class ArraySource(ArrayOptions, TaskSource):
    """Arrays of your own, in a file."""

    name: ClassVar[str] = "arrays"

    path: Path
    rows: Path | None = Field(None, description="table with label, groups and split of every row of the inputs")
    content: str = Field("", description="hash of the files, which decides the run's key")

    @model_validator(mode="before")
    @classmethod
    def _know_the_files(cls, values: dict[str, Any]) -> dict[str, Any]:
        path = Path(values["path"])
        rows = Path(values["rows"]) if values.get("rows") else None
        content = file_hash(path)
        if rows is not None:
            content = f"{content}-{content_hash(rows)}"
        elif path.suffix.lower() == ".npy":
            raise UserError(
                f"{path.name} holds inputs only: name a table with the label of each of its rows, in order, with --rows."
            )
        if not values.get("label"):
            there = column_names(rows) if rows is not None else array_names(path)
            raise UserError(
                f"{path.name} needs --label with the {'array' if rows is None else 'column'} of the class to predict; "
                f"there are {', '.join(there)}."
            )
        return {**values, "path": path, "rows": rows, "content": content}

    @field_serializer("path", "rows")
    def _file_name(self, path: Path | None) -> str | None:
        return None if path is None else path.name  # where the file lies decides nothing

    @property
    def title(self) -> str:
        return self.path.stem

    def load(self, root: Path | None = None) -> Task:
        """The task; ``root`` is not needed."""
        roles = dict.fromkeys((*self.single, *self.groups))
        if self.rows is not None:
            frame = as_frame(self.rows)
            self.check_roles(frame.columns, self.rows.name)
            values = read_array(self.path, self.x)
            check_shape(values, self.x)
            if len(frame) != len(values):
                raise UserError(
                    f"{self.rows.name} must have a row for each of the {len(values)} rows of {self.path.name}, got {len(frame)}."
                )
        else:
            names = array_names(self.path)
            self.check_roles([name for name in names if name != self.x] or names, self.path.name)
            values = read_array(self.path, self.x)
            check_shape(values, self.x)
            frame = columns({name: read_array(self.path, name) for name in roles}, n=len(values))
        return self.task(values, frame, self.title, self.content)


def task_from_arrays(
    x: Any, y: Any, *, groups: Any = None, split: Any = None, weight: Any = None, id: Any = None, **options: Any
) -> Task:
    """The task of inputs ``x`` [n, ...] and labels ``y`` [n]; ``options`` are those of ``ArrayOptions`` that name no array.

    ``groups`` is an array [n] or a mapping from names to arrays [n], whose values make the groups, with the label.

    >>> import numpy as np
    >>> x, place = np.random.default_rng(0).normal(size=(40, 3)), ["land", "water"] * 20
    >>> task_from_arrays(x, ["bird", "bird", "none", "none"] * 10, groups=place).groups
    ('bird, land', 'bird, water', 'none, land', 'none, water')
    """
    values = in_memory(x)
    check_shape(values, "x")
    by = groups if isinstance(groups, Mapping) else {} if groups is None else {"group": groups}
    single = {"split": split, "weight": weight, "id": id}
    arrays = {name: in_memory(array) for name, array in {"y": y, **by, **single}.items() if array is not None}
    roles: dict[str, Any] = {name: None if array is None else name for name, array in single.items()}
    chosen = ArrayOptions(label="y", groups=tuple(by), **roles, **options)
    chosen.check_roles(list(arrays), "the arrays")
    task = chosen.task(values, columns(arrays, n=len(values)), "arrays", _content(values))
    return replace(task, kind=ArraySource.name)


def _content(values: Array) -> str:
    """A hash of an array in memory."""
    return hashlib.sha256(np.ascontiguousarray(values).view(np.uint8).data).hexdigest()[:32]
