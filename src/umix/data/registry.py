"""The tasks umix knows by name: one line each."""

from pathlib import Path
from typing import Any

from umix.data.camelyon17 import Camelyon17
from umix.data.celeba import CelebA
from umix.data.colored_digits import ColoredDigits
from umix.data.four_moons import FourMoons
from umix.data.task import Task, TaskSource
from umix.data.waterbirds import Waterbirds
from umix.errors import unknown

TASKS: dict[str, type[TaskSource]] = {
    source.name: source for source in (ColoredDigits, FourMoons, Waterbirds, CelebA, Camelyon17)
}


def task_source(name: str, **options: Any) -> TaskSource:
    """The source of the task called ``name`` with these options, not loaded yet."""
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    return TASKS[name](**options)


def load_task(name: str, root: str | Path | None = None, **options: Any) -> Task:
    """The task called ``name``, from the local folder ``root`` where it has files.

    >>> load_task("four_moons").groups
    ('moon 0', 'moon 1', 'moon 2', 'moon 3')
    """
    return task_source(name, **options).load(None if root is None else Path(root))
