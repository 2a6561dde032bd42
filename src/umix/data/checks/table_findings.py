"""All findings about a table of one's own, and the few that a run looks for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from umix.data.checks.column_findings import identifiers, missing_values, number_texts, split_columns
from umix.data.checks.copies import copies, row_keys
from umix.data.checks.finding import Finding
from umix.data.checks.group_findings import group_columns
from umix.data.checks.label_leaks import leaks
from umix.data.rows.role_columns import Rows

if TYPE_CHECKING:
    import polars

#: Training rows in which a run looks for inputs that give the label away; ``umix doctor`` looks at more.
ROWS_OF_A_RUN = 2_000


@final
@dataclass(frozen=True, eq=False)
class LabelledTable:
    """A table, the roles of its columns, the class ``y`` of each row and the rows of each split."""

    frame: "polars.DataFrame"
    inputs: Sequence[str]
    label: str
    groups: Sequence[str]
    y: Rows
    rows: Mapping[str, Rows]

    @property
    def table(self) -> "polars.DataFrame":
        """The input columns."""
        return self.frame.select(self.inputs)


def table_findings(of: LabelledTable, *, constant: Sequence[str] = ()) -> list[Finding]:
    """Everything that the columns and rows of the table show, the most serious first; ``constant`` inputs are not used.

    A column has at most one finding as an input: what looks like a split or an identifier is not examined further.
    """
    odd = split_columns(of.table) + identifiers(of.table)
    other = [name for name in of.inputs if name not in {finding.subject for finding in odd}]
    return [
        *_leaks(of, other),
        *odd,
        *copies(row_keys(of.frame.select(other or of.inputs)), of.y, of.rows),
        *number_texts(of.frame.select(other)),
        *group_columns(of.frame, of.groups),
        *missing_values(of.frame.select(other), constant=constant),
    ]


def run_findings(of: LabelledTable) -> list[Finding]:
    """The findings that a run shows before it trains: quick to make, and not among the notes of the task.

    Identifiers, constant columns and groups that are too small are notes of the task, which the run shows anyway.
    """
    splits, ids = split_columns(of.table), identifiers(of.table)
    other = [name for name in of.inputs if name not in {finding.subject for finding in splits + ids}]
    return [
        *_leaks(of, other, most_rows=ROWS_OF_A_RUN),
        *splits,
        *copies(row_keys(of.frame.select(other or of.inputs)), of.y, of.rows),
        *number_texts(of.frame.select(other)),
        *group_columns(of.frame, of.groups),
    ]


def _leaks(of: LabelledTable, names: Sequence[str], *, most_rows: int | None = None) -> list[Finding]:
    train = np.sort(of.rows["train"])
    chosen = {} if most_rows is None else {"most_rows": most_rows}
    return leaks(of.frame.select(names), of.y, label=of.label, rows=train, **chosen)
