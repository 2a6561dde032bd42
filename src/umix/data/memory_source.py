"""A task that was made in Python, as a source: its content, not a file, decides the key of a run."""

import re
from pathlib import Path
from typing import ClassVar, final

from pydantic import Field

from umix.data.task import Task, TaskSource
from umix.errors import UserError

_NAME = re.compile(r"memory:(?P<kind>\w+)/(?P<label>.+)@(?P<fingerprint>[0-9a-f]{32})")


@final
class MemorySource(TaskSource):
    """A task in memory. It cannot be loaded by its name: whoever executes a run on it hands the task over."""

    name: ClassVar[str] = "memory"

    kind: str = Field(description="kind of data whose presets apply: table, arrays, images, text or a benchmark")
    label: str = Field(description="what people call the task")
    fingerprint: str = Field(description="hash of everything in the task")

    @classmethod
    def of(cls, task: Task) -> "MemorySource":
        """The source of ``task``."""
        return cls(kind=_kind(task), label=task.name, fingerprint=task.fingerprint)

    @classmethod
    def parse(cls, reference: str) -> dict[str, str] | None:
        """The options that ``reference`` stands for; None if it names no task in memory.

        >>> MemorySource.parse("memory:table/people@" + 32 * "0")["label"]
        'people'
        """
        match = _NAME.fullmatch(reference)
        return None if match is None else match.groupdict()

    @property
    def reference(self) -> str:
        """The task's name in a spec."""
        return f"memory:{self.kind}/{self.label}@{self.fingerprint}"

    @property
    def title(self) -> str:
        return re.sub(r"[^\w.\-]+", "_", self.label)

    def load(self, root: Path | None) -> Task:
        raise UserError(
            f"The task {self.label!r} was made in memory and has no file to load it from; pass the task itself to execute, train "
            "or run_study."
        )


def _kind(task: Task) -> str:
    """The kind of ``task``: what made it, or by its inputs: whole numbers are texts, [channels, height, width] is an image."""
    if task.kind:
        return task.kind
    example = task.splits["train"].example
    if not example.is_floating_point():
        return "text"
    return "images" if example.dim() >= 3 else "arrays"
