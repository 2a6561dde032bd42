"""Tasks: splits of examples, what is known of them, and how they become batches."""

from umix.data.batch import Batch
from umix.data.groups import Groups
from umix.data.registry import TASKS, load_task, task_source
from umix.data.task import Split, Task, TaskSource

__all__ = ["TASKS", "Batch", "Groups", "Split", "Task", "TaskSource", "load_task", "task_source"]
