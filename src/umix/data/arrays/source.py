"""A task from arrays of one's own: precomputed features, or images, with a row for each example.

An .npz file holds the inputs beside the labels, groups and splits. An .npy file holds the inputs alone; a table then holds the
rest, with its rows in the same order. Inputs become float32 [n, ...]; pixels [n, height, width, 3] become [n, 3, height, width].
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
from pydantic import Field, field_serializer

from umix.data.arrays.array_file import Array, array_names, columns, read_array
from umix.data.arrays.preprocessing import ArrayPreprocessing, check_shape, in_memory
from umix.data.rows.known_rows import check_roles, known_rows
from umix.data.rows.row_notes import small_groups
from umix.data.rows.row_roles import RowRoles
from umix.data.rows.table_file import as_frame, column_names, content_hash, file_hash
from umix.data.task import Task, TaskSource
from umix.errors import Setting, UserError

if TYPE_CHECKING:
    import polars


@final
class ArraySource(RowRoles, TaskSource):
    """Arrays of your own (.npz, or .npy and a table): which array is what, and how the rows are divided."""

    name: ClassVar[str] = "arrays"

    path: Path = Field(description="the file")
    rows: Path | None = Field(None, description="table with label, groups and split of every row of the inputs")
    x: str = Field("x", description="array of the inputs, [rows, ...]")
    standardize: bool = Field(
        True, description="inputs minus their training mean, divided by their deviation; of images by channel"
    )

    @field_serializer("path", "rows")
    def _file_name(self, path: Path | None) -> str | None:
        return None if path is None else path.name  # the folder does not decide the run's numbers

    @property
    def title(self) -> str:
        return self.path.stem

    @cached_property
    def content(self) -> str:
        """The hash of the array file, and of the table where there is one."""
        return file_hash(self.path) + ("" if self.rows is None else f"-{content_hash(self.rows)}")

    def check_files(self) -> None:
        """Raise where a file is missing or unreadable, or where nothing names the label of each row."""
        self.content  # noqa: B018 — reads the files
        if self.rows is None and self.path.suffix.lower() == ".npy":
            raise UserError(
                f"{self.path.name} holds inputs only: name a table with the label of each of its rows, in order, with ",
                Setting("rows"),
                ".",
            )
        if not self.label:
            there = array_names(self.path) if self.rows is None else column_names(self.rows)
            raise UserError(
                f"{self.path.name} needs ",
                Setting("label"),
                f" with the {'array' if self.rows is None else 'column'} of the class to predict; there are "
                f"{', '.join(there)}.",
            )

    def load(self, root: Path | None = None) -> Task:
        """The task in the files; ``root`` is not needed."""
        self.check_files()
        if self.rows is not None:
            frame = as_frame(self.rows)
            check_roles(self, frame.columns, self.rows.name)
            values = read_array(self.path, self.x)
            check_shape(values, self.x)
            if len(frame) != len(values):
                raise UserError(
                    f"{self.rows.name} must have a row for each of the {len(values)} rows of {self.path.name}, got {len(frame)}."
                )
        else:
            names = array_names(self.path)
            check_roles(self, [name for name in names if name != self.x] or names, self.path.name)
            values = read_array(self.path, self.x)
            check_shape(values, self.x)
            roles = dict.fromkeys((*self.single, *self.groups))
            frame = columns({name: read_array(self.path, name) for name in roles}, n=len(values))
        return self.task(values, frame, fingerprint=self.content)

    def task(self, values: Array, frame: "polars.DataFrame", *, fingerprint: str) -> Task:
        """The task of the inputs ``values``; the columns of ``frame`` are the other arrays."""
        known = known_rows(self, frame)
        preprocessing = ArrayPreprocessing.fit(
            values, known.rows["train"], x=self.x, standardize=self.standardize, id=self.id
        )
        splits = {}
        for name, rows in known.rows.items():
            x, change = preprocessing.stored(values, rows, fingerprint)
            splits[name] = known.split(name, x, transform=change)
        notes = known.notes + tuple(small_groups(splits))
        return Task(self.title, splits, known.classes, preprocessing=preprocessing, notes=notes)


def task_from_arrays(
    x: Any, y: Any, *, groups: Any = None, split: Any = None, weight: Any = None, id: Any = None, **options: Any
) -> Task:
    """The task of inputs ``x`` [n, ...] and labels ``y`` [n]; ``options`` are those of ``ArraySource`` that name no array.

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
    source = ArraySource(
        path=Path("arrays"), label="y", groups=tuple(by), **roles, **options
    )  # the path is only a title
    check_roles(source, list(arrays), "the arrays")
    task = source.task(values, columns(arrays, n=len(values)), fingerprint=_content(values))
    return replace(task, kind=ArraySource.name)


def _content(values: Array) -> str:
    """A hash of an array in memory."""
    return hashlib.sha256(np.ascontiguousarray(values).view(np.uint8).data).hexdigest()[:32]
