"""Problems of a data folder: ``umix doctor`` lists them all, loading raises the first."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from umix.errors import Setting, UserError

_LISTED = 10


@final
@dataclass(frozen=True)
class Problem:
    """A rule, how many entries break it, and the first of them."""

    rule: str
    count: int
    examples: tuple[str, ...]

    def __str__(self) -> str:
        more = ", …" if self.count > len(self.examples) else ""
        return f"{self.rule}, but {self.count:,} do not: {', '.join(self.examples)}{more}"


@final
@dataclass
class Problems:
    """All problems, in the order in which they were found."""

    entries: list[Problem] = field(default_factory=list)

    def add(self, rule: str, broken: Sequence[str]) -> None:
        """Note that each of ``broken`` breaks ``rule``; nothing is noted where there are none."""
        if broken:
            self.entries.append(Problem(rule, len(broken), tuple(broken[:_LISTED])))

    def raise_first(self, task: str, folder: object) -> None:
        """Raise the first problem where there is one."""
        if self.entries:
            raise UserError(
                f"{self.entries[0]}; umix doctor {task} ", Setting("root", f"{folder}"), " lists all problems."
            )


@final
@dataclass(frozen=True)
class FolderCheck:
    """What a folder's table says before any image is opened: which images there are, and counts by split and group."""

    folder: Path
    images: list[str]  # relative to the folder
    counts: dict[str, dict[str, int]]
    problems: Problems
    mismatches: list[str] = field(default_factory=list)  # with what was published
    allow_subset: bool = False
    notes: list[str] = field(default_factory=list)
