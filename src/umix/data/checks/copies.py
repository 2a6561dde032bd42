"""Findings about rows that are in train and again in val or test.

Rates of rows that were trained on are too good. At least ``MANY_COPIES`` of the rows of val and test must have the inputs of a
training row to be reported. In tables with few values many rows coincide without being copies of each other; their labels then
disagree about as often as those of any two rows. So the finding is made only if they disagree less than half as often.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from umix.core.words import counted
from umix.data.checks.finding import Finding
from umix.data.rows.role_columns import Rows
from umix.errors import Setting

if TYPE_CHECKING:
    import polars

MANY_COPIES = 0.01


def row_keys(table: "polars.DataFrame") -> NDArray[np.uint64]:
    """A hash of each row of ``table``, [n]: equal rows have equal hashes."""
    return table.hash_rows(seed=0).to_numpy()


def copies(keys: NDArray[np.uint64], y: Rows, rows: Mapping[str, Rows]) -> list[Finding]:
    """A finding if many rows of val and test have the same key (the same inputs) as a training row."""
    judged = np.concatenate([rows["val"], rows["test"]])
    first, place = np.unique(keys[rows["train"]], return_index=True)
    at = np.searchsorted(first, keys[judged]).clip(max=len(first) - 1)
    same = first[at] == keys[judged]
    n = int(same.sum())
    if n == 0 or n < MANY_COPIES * len(judged):
        return []
    other_label = int(np.sum(y[judged][same] != y[rows["train"]][place[at[same]]]))
    shares = np.bincount(y) / len(y)
    by_chance = 1 - float(np.sum(shares**2))
    if other_label >= 0.5 * by_chance * n:
        return []
    conflict = f", {other_label:,} of them with another label" if other_label else ""
    sentence = (
        f"{n:,} of {counted(len(judged), 'row')} in val and test ({n / len(judged):.1%}) have the same inputs as a training row"
        f"{conflict}: if they are copies, the rates are too good."
    )
    fix = ("Remove the copies, or keep all copies of a row in one split with ", Setting("split"), ".")
    return [Finding("look", "rows", sentence, fix)]
