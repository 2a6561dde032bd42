"""Findings about a table as a whole: inputs that give the label away, rows that are in train and again in val or test.

An input **gives the label away** if its values correspond one to one to the classes: it is a copy. Any other input alone predicts
the label of held-out rows: a text by the most frequent class of its value, a number by a small decision tree. It is reported if it
removes at least ``SUSPICIOUS`` of the errors of always predicting the most frequent class. Honest inputs stay far below: the best
one removes 20 % in the Adult table, and 75 % in scikit-learn's breast cancer data. Only training rows are looked at, at most
``MOST_ROWS``; a third of them is held out, and nothing is said about fewer than ``FEWEST`` held-out rows.

Rates of rows that were trained on are too good. At least ``MANY_COPIES`` of the rows of val and test must have the inputs of a
training row to be reported as **copies**. In tables with few values many rows coincide without being copies of each other; their
labels then disagree about as often as those of any two rows. So the finding is made only if they disagree less than half as often.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from umix.core.statistics import FEW_EXAMPLES
from umix.core.streams import stream
from umix.core.words import counted
from umix.data.checks.column_findings import identifiers, missing_values, number_texts, repeated_ids, split_columns
from umix.data.checks.finding import Finding
from umix.data.checks.group_findings import group_columns
from umix.data.rows.role_columns import Rows
from umix.errors import Setting

if TYPE_CHECKING:
    import polars

SUSPICIOUS = 0.95
MOST_ROWS = 20_000
#: Training rows in which a run looks for inputs that give the label away; ``umix doctor`` looks at more.
ROWS_OF_A_RUN = 2_000
FEWEST = 100
_HELD_OUT = 1 / 3
MANY_COPIES = 0.01


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


def table_findings(of: LabelledTable, *, constant: Sequence[str] = (), before_run: bool = False) -> list[Finding]:
    """Everything that the columns and rows of the table show, the most serious first; ``constant`` inputs are not used.

    A column has at most one finding as an input: what looks like a split or an identifier is not examined further. With
    ``before_run`` these are the quick ones, without those that the run itself says as notes of its task.
    """
    splits, ids = split_columns(of.table), identifiers(of.table)
    other = [name for name in of.inputs if name not in {finding.subject for finding in splits + ids}]
    train, most_rows = np.sort(of.rows["train"]), ROWS_OF_A_RUN if before_run else MOST_ROWS
    return [
        *leaks(of.frame.select(other), of.y, label=of.label, rows=train, most_rows=most_rows),
        *splits,
        *repeated_ids(of.frame.drop(of.label, *of.groups), of.rows),
        *([] if before_run else ids),
        *copies(row_keys(of.frame.select(other or of.inputs)), of.y, of.rows),
        *number_texts(of.frame.select(other)),
        *group_columns(of.frame, of.groups),
        *([] if before_run else missing_values(of.frame.select(other), constant=constant)),
    ]


def leaks(
    table: "polars.DataFrame", y: Rows, *, label: str, rows: Rows | None = None, most_rows: int = MOST_ROWS
) -> list[Finding]:
    """The columns of ``table`` that alone tell the class ``y`` of nearly every one of the training rows, ``rows`` or all."""
    train = np.arange(len(table)) if rows is None else rows
    order = train[stream(0, "data", "checks/leaks").permutation(len(train))[:most_rows]]
    y = y[order]
    n_held_out = round(_HELD_OUT * len(order))
    if len(order) < FEW_EXAMPLES or len(np.unique(y)) < 2:
        return []
    guessed = float(np.mean(y[:n_held_out] == np.bincount(y[n_held_out:]).argmax()))
    findings = []
    for name in table.columns:
        if table[name].dtype.is_nested():
            continue
        column = table[name][order]
        if _is_copy(column, y):
            said = f"The column {name!r} is an input but a copy of the label {label!r}: each of its values means one class."
            findings.append(_finding(name, said))
        elif n_held_out >= FEWEST and guessed < 1:
            rate = _held_out_rate(column, y, n_held_out=n_held_out)
            if rate - guessed >= SUSPICIOUS * (1 - guessed):
                said = (
                    f"The column {name!r} alone tells {label!r} in {rate:.1%} of held-out training rows (always the most "
                    f"frequent class: {guessed:.1%}), so it may give the label away."
                )
                findings.append(_finding(name, said))
    return findings


def _finding(name: str, sentence: str) -> Finding:
    fix = ("If it is not known when you predict, leave it out with ", Setting("drop", name), ".")
    return Finding("look", name, sentence, fix)


def _is_copy(column: "polars.Series", y: Rows) -> bool:
    """Whether every value belongs to one class and every class has one value."""
    n_classes = len(np.unique(y))
    if column.n_unique() != n_classes:
        return False
    return len(np.unique(_codes(column) * (y.max() + 1) + y)) == n_classes


def _held_out_rate(column: "polars.Series", y: Rows, *, n_held_out: int) -> float:
    """The accuracy on the first ``n_held_out`` rows of a rule that is learned from the other rows."""
    import polars

    if column.dtype in (polars.String, polars.Categorical, polars.Enum):
        predicted = _by_value(_codes(column), y, n_held_out)
    else:
        predicted = _by_tree(_numbers(column), y, n_held_out)
    return float(np.mean(predicted == y[:n_held_out]))


def _by_value(codes: Rows, y: Rows, n_held_out: int) -> Rows:
    """The most frequent class of each row's value; a value that only held-out rows have gets the most frequent class of all."""
    n_classes, fitted = int(y.max()) + 1, slice(n_held_out, None)
    cell, count = np.unique(codes[fitted] * n_classes + y[fitted], return_counts=True)
    best = np.full(int(codes.max()) + 1, np.bincount(y[fitted]).argmax())
    rising = np.argsort(count, kind="stable")  # the last one written is the most frequent
    best[cell[rising] // n_classes] = cell[rising] % n_classes
    return best[codes[:n_held_out]]


def _by_tree(numbers: NDArray[np.float32], y: Rows, n_held_out: int) -> Rows:
    """The predictions of a decision tree with a few leaves per class."""
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(min_samples_leaf=5, max_leaf_nodes=4 * (int(y.max()) + 1), random_state=0)
    predicted: Rows = tree.fit(numbers[n_held_out:], y[n_held_out:]).predict(numbers[:n_held_out])
    return predicted


def _numbers(column: "polars.Series") -> NDArray[np.float32]:
    """The values as [n, 2]: the number, and whether it is missing."""
    import polars

    if column.dtype.is_temporal():
        column = column.to_physical()
    numbers = column.cast(polars.Float64, strict=False).to_numpy()
    missing = ~np.isfinite(numbers)
    small = np.clip(np.where(missing, 0.0, numbers), -1e30, 1e30)  # so that it stays finite
    return np.stack([small, missing], axis=1).astype(np.float32)


def _codes(column: "polars.Series") -> Rows:
    """A number for each distinct value; a missing value is a value."""
    import polars

    return column.cast(polars.String, strict=False).rank("dense").fill_null(0).to_numpy().astype(np.int64)


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
