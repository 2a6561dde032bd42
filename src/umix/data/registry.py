"""The tasks umix knows by name: one line each."""

import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from umix.data.arrays.array_file import SUFFIXES as ARRAYS
from umix.data.arrays.source import ArraySource
from umix.data.benchmarks.camelyon17 import Camelyon17
from umix.data.benchmarks.celeba import CelebA
from umix.data.benchmarks.civilcomments import CivilComments
from umix.data.benchmarks.colored_digits import ColoredDigits
from umix.data.benchmarks.four_moons import FourMoons
from umix.data.benchmarks.waterbirds import Waterbirds
from umix.data.images.image_folder import ImageFolder
from umix.data.rows.table_file import SUFFIXES
from umix.data.tables.source import TableSource
from umix.data.task import CheckedSource, Task, TaskSource
from umix.data.texts.source import TextSource
from umix.errors import Setting, UserError, unknown

TASKS: dict[str, type[TaskSource]] = {
    source.name: source for source in (ColoredDigits, FourMoons, Waterbirds, CelebA, CivilComments, Camelyon17)
}

#: The kinds of data that people bring, which are named by a path.
OWN: dict[str, type[TaskSource]] = {
    source.name: source for source in (TableSource, ArraySource, ImageFolder, TextSource)
}


def source_kind(name: str, given: Collection[str] = ()) -> tuple[type[TaskSource], dict[str, Any]]:
    """The class of the task called ``name``, or of the data at that path, and the options the name stands for.

    ``given`` are the options that are set: with ``text`` a table is one of texts.

    >>> source_kind("people.csv")[0].name, source_kind("people.csv", ["label", "text"])[0].name
    ('table', 'text')
    """
    if name in TASKS:
        return TASKS[name], {}
    path = Path(name)
    if path.suffix.lower() in ARRAYS:
        return ArraySource, {"path": path}
    if path.suffix.lower() in SUFFIXES or path.is_file():
        return TextSource if "text" in given else TableSource, {"path": path}
    if path.is_dir() or name.endswith(("/", os.sep)):
        return ImageFolder, {"path": path}
    raise unknown("task", name, TASKS)


def refuse_root(root: Path | None, kinds: Iterable[type[TaskSource]]) -> None:
    """Raise where a folder is given and none of the tasks reads files from a folder."""
    able = {name: kind for name, kind in TASKS.items() if issubclass(kind, CheckedSource)}
    if root is not None and not set(able.values()).intersection(kinds):
        raise UserError(
            Setting("root"), f" must go with a task that has files in a folder ({', '.join(able)}), got {root} alone."
        )


def task_source(name: str, **options: Any) -> TaskSource:
    """The source of the task called ``name`` (or the data at that path) with these options, not loaded yet."""
    kind, implied = source_kind(name, options)
    return kind(**options, **implied)


def load_task(name: str, root: str | Path | None = None, **options: Any) -> Task:
    """The task called ``name``, from the local folder ``root`` where it has files.

    >>> load_task("four_moons").groups
    ('moon 0', 'moon 1', 'moon 2', 'moon 3')
    """
    return task_source(name, **options).load(None if root is None else Path(root))
