"""What is wrong with a folder of data: collected by the doctor, refused by loading."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from umix.errors import Setting, UserError

_LISTED = 10


@final
@dataclass(frozen=True)
class Finding:
    """A rule, how many break it, and the first of these."""

    rule: str
    count: int
    examples: tuple[str, ...]

    def __str__(self) -> str:
        more = ", …" if self.count > len(self.examples) else ""
        return f"{self.rule}, but {self.count:,} do not: {', '.join(self.examples)}{more}"


@final
@dataclass
class Findings:
    """All findings, in the order in which they were made."""

    entries: list[Finding] = field(default_factory=list)

    def add(self, rule: str, broken: Sequence[str]) -> None:
        """Note that each of ``broken`` breaks ``rule``; nothing is noted where there are none."""
        if broken:
            self.entries.append(Finding(rule, len(broken), tuple(broken[:_LISTED])))

    def refuse(self, task: str, folder: object) -> None:
        """Raise the first finding, if there is any."""
        if self.entries:
            raise UserError(
                f"{self.entries[0]}; umix doctor {task} ", Setting("root", f"{folder}"), " lists all problems."
            )


@final
@dataclass(frozen=True)
class Checked:
    """What a folder says of itself before its images are opened: which there are, and counts by split and group."""

    folder: Path
    images: list[str]  # relative to the folder
    counts: dict[str, dict[str, int]]
    findings: Findings
    mismatches: list[str] = field(default_factory=list)  # with what was published
    allow_subset: bool = False
    notes: list[str] = field(default_factory=list)
