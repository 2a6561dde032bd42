"""Tasks: splits of examples, what is known of them, and how they become batches.

The names are loaded when they are first used: reports read tables with ``data.rows.table_file``, which needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from umix.data.batch import Batch
    from umix.data.groups import Groups
    from umix.data.registry import TASKS, load_task, task_source
    from umix.data.task import Split, Task, TaskSource

_HOME = {
    "TASKS": "registry",
    "Batch": "batch",
    "Groups": "groups",
    "Split": "task",
    "Task": "task",
    "TaskSource": "task",
    "load_task": "registry",
    "task_source": "registry",
}

__all__ = ["TASKS", "Batch", "Groups", "Split", "Task", "TaskSource", "load_task", "task_source"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'umix.data' has no attribute {name!r}")
    return getattr(import_module(f"umix.data.{_HOME[name]}"), name)
