"""Notes for people about how their table was read, and checks of its splits.

The notes are the sentences of the findings that ``umix doctor`` lists with what to do about them.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from umix.data.checks import column_findings, group_findings
from umix.data.checks.finding import Finding
from umix.data.rows.role_columns import Rows
from umix.data.task import Split
from umix.errors import UserError

if TYPE_CHECKING:
    import polars


def check_classes(rows: dict[str, Rows], y: Rows, classes: tuple[str, ...]) -> list[str]:
    """Notes about classes without rows in val or test; raises where a class has no training row."""
    counts = {}
    for name, index in rows.items():
        if not len(index):
            raise UserError(f"The split {name} must have rows, but it is empty; the table is too small to be divided.")
        counts[name] = dict(zip(classes, np.bincount(y[index], minlength=len(classes)).tolist(), strict=True))
        absent = [label for label, size in counts[name].items() if not size]
        if absent and name == "train":
            raise UserError(f"The split train must have every class, but it has no row of {absent[0]!r}.")
    return _notes(group_findings.absent_classes(counts))


def identifiers(table: "polars.DataFrame") -> list[str]:
    """A note for every input that seems to be a row identifier."""
    return _notes(column_findings.identifiers(table))


def constant_columns(names: Sequence[str]) -> list[str]:
    """A note if inputs are constant in training and therefore left out."""
    return _notes(column_findings.constant_columns(names))


def small_groups(splits: Mapping[str, Split]) -> list[str]:
    """A note if some groups are too small to have a rate worth reading."""
    counts = {
        name: dict(zip(split.groups.names, split.groups.sizes.tolist(), strict=True)) for name, split in splits.items()
    }
    return _notes(group_findings.small_groups(counts))


def _notes(findings: Sequence[Finding]) -> list[str]:
    return [finding.note for finding in findings]
