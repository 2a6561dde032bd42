"""The tasks by name: a line for each task of umix, and the entry points ``umix.tasks`` of installed packages."""

import os
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from umix.data.arrays import ArrayPreprocessing, ArraySource
from umix.data.images.image_folder import ImageFolder, ImageReader
from umix.data.memory_source import MemorySource
from umix.data.rows.reader import Reader
from umix.data.rows.row_roles import RowRoles
from umix.data.rows.table_file import ARRAYS, SUFFIXES, table_suffix
from umix.data.tables.preprocessing import TablePreprocessing
from umix.data.tables.source import TableSource
from umix.data.task import CheckedSource, Task, TaskSource
from umix.data.texts.source import TextSource
from umix.data.texts.text_reader import TextReader
from umix.errors import Setting, UserError
from umix.registry import Registry

TASKS: Registry[TaskSource] = Registry(
    "task",
    base="umix.data.task:TaskSource",
    group="umix.tasks",
    own={
        "colored_digits": "umix.data.benchmarks.colored_digits:ColoredDigits",
        "four_moons": "umix.data.benchmarks.four_moons:FourMoons",
        "waterbirds": "umix.data.benchmarks.waterbirds:Waterbirds",
        "celeba": "umix.data.benchmarks.celeba:CelebA",
        "civilcomments": "umix.data.benchmarks.civilcomments:CivilComments",
        "camelyon17": "umix.data.benchmarks.camelyon17:Camelyon17",
    },
)

#: The kinds of data that people bring themselves; a path names them.
OwnSource = TableSource | ArraySource | ImageFolder | TextSource
OWN: dict[str, type[OwnSource]] = {
    source.name: source for source in (TableSource, ArraySource, ImageFolder, TextSource)
}

#: The readers of new data for a finished run, by the kind of data that it was trained on.
READERS: dict[str, type[Reader]] = {
    "arrays": ArrayPreprocessing,
    "images": ImageReader,
    "table": TablePreprocessing,
    "text": TextReader,
}


def source_kind(name: str, given: Collection[str] = ()) -> tuple[type[TaskSource], dict[str, Any]]:
    """The class of the task called ``name``, or of the data at that path, and the options the name stands for.

    ``given`` are the options that are set: a table with the option ``text`` is a table of texts.

    >>> source_kind("people.csv")[0].name, source_kind("people.csv", ["label", "text"])[0].name
    ('table', 'text')
    """
    if (in_memory := MemorySource.parse(name)) is not None:
        return MemorySource, in_memory
    path = Path(name)
    if name in TASKS.own:
        return TASKS[name], {}
    if path.suffix.lower() in ARRAYS:
        return ArraySource, {"path": path}
    if table_suffix(path) in SUFFIXES or os.path.isfile(path):  # which no name makes raise
        return TextSource if "text" in given else TableSource, {"path": path}
    if name not in TASKS and (os.path.isdir(path) or name.endswith(("/", os.sep))):
        return ImageFolder, {"path": path}
    return TASKS.find(name), {}


def refuse_root(root: Path | None, kinds: Iterable[type[TaskSource]]) -> None:
    """Raise UserError if a folder is given and none of the tasks reads files from one."""
    if root is None:
        return  # without listing the tasks, which would import plug-ins
    able = {name: kind for name, kind in TASKS.items() if issubclass(kind, CheckedSource)}
    if not set(able.values()).intersection(kinds):
        raise UserError(
            Setting("root"), f" must go with a task that has files in a folder ({', '.join(able)}), got {root} alone."
        )


def refuse_folds(task: str, folds: int | None) -> None:
    """Raise UserError if folds are asked for and ``task`` is not divided by umix: it is a benchmark, or a task in memory."""
    if folds is not None and not issubclass(source_kind(task)[0], RowRoles):
        raise UserError(
            Setting("folds"),
            " must be about a file or folder of your own, whose rows umix divides; a benchmark or a task in memory has its splits.",
        )


def task_source(name: str, **options: Any) -> TaskSource:
    """The source of the task called ``name`` (or the data at that path) with these options, not loaded yet."""
    kind, implied = source_kind(name, options)
    return kind(**options, **implied)


def load_task(name: str, root: str | Path | None = None, **options: Any) -> Task:
    """The task called ``name``; nothing is downloaded.

    Args:
        name: a name that ``umix tasks`` lists, or the path of data of your own.
        root: folder of a benchmark's files.
        options: settings of the task, as ``label="income"`` for data of your own; the page of settings lists them.

    >>> load_task("four_moons").groups
    ('moon 0', 'moon 1', 'moon 2', 'moon 3')

    """
    source = task_source(name, **options)
    return replace(source.load(None if root is None else Path(root)), kind=source.name, source=source)
