"""The check of data without training: a folder's table, whether every image can be decoded, and counts."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from umix.data.checks.problems import Problem
from umix.data.images.image_files import decode
from umix.data.task import CheckedSource, Task

_AT_ONCE = 256


@final
@dataclass(frozen=True)
class DataCheck:
    """The check of a folder or file: problems, counts by split and group, and counts that differ from the published ones.

    ``classes`` are the counts by split and class, where the data were loaded. Without groups, ``counts`` are the same.
    """

    folder: Path
    images: int
    counts: dict[str, dict[str, int]]
    problems: list[Problem]
    mismatches: list[str]
    allow_subset: bool
    notes: list[str]
    classes: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def rows(self) -> dict[str, int]:
        """The size of every split, where the data were loaded."""
        return {name: sum(sizes.values()) for name, sizes in self.classes.items()}

    @property
    def fine(self) -> bool:
        """Whether the folder can be trained on."""
        return not self.problems and (self.allow_subset or not self.mismatches)


def check_data(
    source: CheckedSource, root: Path | None, *, advance: Callable[[int], None] = lambda n: None
) -> DataCheck:
    """The check of the folder of ``source``; ``advance`` is called with the number of images just opened."""
    checked = source.check(root)
    folder, problems = checked.folder, checked.problems
    missing, unreadable = [], []
    names = list(dict.fromkeys(checked.images))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for begin in range(0, len(names), _AT_ONCE):
            part = names[begin : begin + _AT_ONCE]
            for name, problem in zip(part, pool.map(lambda name: _problem(folder / name), part), strict=True):
                if problem == _MISSING:
                    missing.append(name)
                elif problem:
                    unreadable.append(f"{name} ({problem})")
            advance(len(part))
    problems.add("listed images must be in the folder", missing)
    problems.add("images must be decodable", unreadable)
    return DataCheck(
        folder,
        len(names),
        checked.counts,
        problems.entries,
        checked.mismatches,
        checked.allow_subset,
        checked.notes,
    )


def check_rows(path: Path, task: Task) -> DataCheck:
    """The counts of ``task``, which was loaded from ``path``; loading has already raised what is wrong with the file."""
    counts = {name: split.group_sizes(task.classes) for name, split in task.splits.items()}
    classes = {name: split.class_sizes(task.classes) for name, split in task.splits.items()}
    return DataCheck(path, 0, counts, [], [], False, list(task.notes), classes)


_MISSING = "missing"


def _problem(path: Path) -> str:
    """Why the image at ``path`` cannot be used; empty where it can."""
    try:
        decode(path)
    except FileNotFoundError:
        return _MISSING
    except Exception as error:  # Pillow raises many types for broken files
        return str(error).replace(str(path), "it") or type(error).__name__
    return ""
