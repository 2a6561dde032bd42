"""Where runs read and write: values that change no number. Imports no torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, final

from umix.checkpoint_pace import USUAL, CheckpointPace
from umix.errors import Setting, UserError, is_utf8

if TYPE_CHECKING:
    from umix.bench.spec.run_spec import RunSpec
    from umix.data.task import Task, TaskSource

#: The folder beside the runs with the stages that several runs share.
STAGES = "stages"
#: The folder beside the runs with decoded images and features.
CACHE = "cache"


@final
@dataclass(frozen=True, eq=False)
class RunPaths:
    """Folders of runs, how often checkpoints are written there, and tasks that are in memory already.

    None of them is part of a run's key.
    """

    out: Path = Path("runs")  # every run has a folder of its own below it
    root: Path | None = None  # files of a benchmark task
    roots: Mapping[str, Path] = field(default_factory=dict)  # the same by task name, where a study has several
    cache: Path | None = None  # decoded images and features of frozen nets; default: ``cache`` below ``out``
    stages: Path | None = None  # shared stages; default: ``stages`` below ``out``
    stream: bool = False  # decode images in every epoch instead of once into the cache
    pace: CheckpointPace = USUAL  # how often checkpoints are written
    tasks: "Mapping[str, Task]" = field(default_factory=dict)  # tasks made in Python, by the name in the spec

    def __post_init__(self) -> None:
        for setting in ("out", "root", "cache"):
            given = str(getattr(self, setting))
            if not is_utf8(given) or "\0" in given:
                raise UserError(Setting(setting), f" must be a path in UTF-8, got {given!r}; choose another folder.")

    @property
    def cache_folder(self) -> Path:
        return self.out / CACHE if self.cache is None else self.cache

    @property
    def stages_folder(self) -> Path:
        return self.out / STAGES if self.stages is None else self.stages

    def run_folder(self, spec: "RunSpec") -> Path:
        """The folder of the run ``spec``."""
        return self.out / spec.directory_name

    def load(self, spec: "RunSpec") -> "Task":
        """The task of ``spec``: the one in memory if there is one, else read from its files."""
        task = self.tasks.get(spec.task)
        return spec.plan.source.load(self.root_of(spec)) if task is None else task

    def load_cached(self, spec: "RunSpec") -> "Task":
        """Like ``load``, but the task loaded last is kept for the next run that needs it."""
        task, source = self.tasks.get(spec.task), spec.plan.source
        return _load_once(source, source.content, self.root_of(spec)) if task is None else task

    def root_of(self, spec: "RunSpec") -> Path | None:
        """The folder of the files of ``spec``'s task, if it has one."""
        return self.roots.get(spec.task, self.root)


@lru_cache(maxsize=1)
def _load_once(source: "TaskSource", content: str | None, root: Path | None) -> "Task":
    """The task of ``source``, whose files have this ``content``. Methods never change a task, so the next run can have it too."""
    return source.load(root)
