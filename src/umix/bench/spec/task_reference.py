"""A task as a spec names it: a name or path with settings, or a reference to a task in memory."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

from umix.data.memory_source import MemorySource
from umix.data.task import Task
from umix.errors import UserError


@final
@dataclass(frozen=True, eq=False)
class TaskReference:
    """The ``name`` and the ``settings`` of a spec, and the ``task`` itself if it is loaded already."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    task: Task | None = None

    @property
    def tasks(self) -> dict[str, Task]:
        """The loaded task by its name, as ``RunPaths`` takes it."""
        return {} if self.task is None else {self.name: self.task}


def reference_to(task: Task | str | Path) -> TaskReference:
    """The reference to ``task``. A task that came from a file or is embedded is named as on the command line."""
    if isinstance(task, str | Path):
        return TaskReference(str(task))
    if not isinstance(task, Task):
        raise UserError(
            "A task must be a umix.Task, a name or a path, got ",
            f"{type(task).__name__}; make one of a frame or of arrays with task_from_table or task_from_arrays.",
        )
    source = task.source
    if source is None:
        # Fingerprints are kept: copies without them notice tensors that were changed in place since.
        task = replace(task, splits={name: replace(split) for name, split in task.splits.items()})
        return TaskReference(MemorySource.of(task).reference, task=task)
    path = getattr(source, "path", None)
    options = source.model_dump(exclude_unset=True, exclude={"path", "content"})
    paths = {name: str(value) for name in options if isinstance(value := getattr(source, name), Path)}  # dumped by name
    options |= paths
    settings = {f"task.{name}": list(value) if isinstance(value, tuple) else value for name, value in options.items()}
    return TaskReference(source.name if path is None else str(path), settings, task)
