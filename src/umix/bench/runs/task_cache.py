"""The last task that was loaded, for the many runs of a study that need the same one."""

from functools import lru_cache
from pathlib import Path

from umix.data.task import Task, TaskSource


def load_once(source: TaskSource, root: Path | None) -> Task:
    """The task of ``source``, not loaded again where it is the one that was asked for last.

    Methods never change a task (the contract of every method), so runs can have it one after the other.
    """
    return _load(source, source.content, root)


@lru_cache(maxsize=1)
def _load(source: TaskSource, content: str | None, root: Path | None) -> Task:
    return source.load(root)
