"""Where the model fails, in the words of a table: slices of rows with a high held-out error.

A shallow tree over the columns is grown on the errors of validation rows under the selected model. Its leaves are candidates. A
candidate is shown if the lower end of its error's interval on *test* rows is above the error of all test rows. Rows without a value
are neither among those with a small or a large number nor among those with another value: they are a candidate of their own. The
label is never a condition: people do not know it when they use the model. Group columns may be conditions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, final

import numpy as np

from umix.core.statistics import FEW_EXAMPLES, Interval, wilson
from umix.data.rows.column_kinds import is_missing
from umix.reports.page.training_table import Source
from umix.reports.predictions import Predictions

if TYPE_CHECKING:
    import polars
    from sklearn.tree import DecisionTreeRegressor

_MOST_ANSWERS = 3_000_000  # rows × questions that a tree is grown on: under a second
_FEWEST_ROWS = 60  # validation rows below which no tree is grown
_VALUES = 20  # of a column, each with a question of its own
_FLAG = 3  # distinct values, a missing one included, up to which whole numbers are values to name and not to compare
_DEPTH = 3
_SHOWN = 6
_CLEAR = 4.0  # standard errors between the two sides of a split: the tree has chosen it among hundreds


@final
@dataclass(frozen=True)
class Slice:
    """Rows that share ``description``. Rates are in [0, 1] and about test rows, those with ``val_`` about validation rows.

    ``lift`` is the error inside divided by the error of the other rows, None where those have no error. ``baseline_error`` is that
    of the baseline on the same rows, None where there is none. ``group`` is the group with the largest share of the slice,
    ``group_share`` that share. ``group_columns`` are the group columns among the conditions.
    """

    description: str
    size: int
    error: float
    interval: Interval
    lift: float | None
    val_size: int
    val_error: float
    baseline_error: float | None
    group: str | None
    group_share: float | None
    group_columns: tuple[str, ...]


@final
@dataclass(frozen=True)
class Question:
    """A yes-or-no question about a row (``column`` is ``value``; missing), or how large a number is (``value`` is None).

    ``fill`` is what the tree takes for the answer of a row that has no value.
    """

    column: str
    value: str | None
    missing: bool = False
    fill: float = 0.0

    def answers(self, table: "polars.DataFrame") -> np.ndarray:
        """The answers of all rows of ``table``, float32 [n]."""
        import polars

        column = table[self.column]
        if self.missing:
            return _missing(column).astype(np.float32)
        if self.value is not None:
            return (column.cast(polars.String) == self.value).fill_null(False).to_numpy().astype(np.float32)
        numbers = column.cast(polars.Float32).fill_null(self.fill).fill_nan(self.fill).to_numpy()
        limit = np.finfo(np.float32).max
        return np.asarray(np.clip(np.nan_to_num(numbers), -limit, limit))


@final
@dataclass(frozen=True)
class Condition:
    """One side of a split: the answer to ``question`` is above ``threshold``, or it is not."""

    question: Question
    threshold: float
    above: bool

    @property
    def text(self) -> str:
        question = self.question
        if question.missing:
            return f"{question.column} is {'missing' if self.above else 'known'}"
        if question.value is not None:
            return f"{question.column} {'=' if self.above else '≠'} {question.value[:60]}"
        return f"{question.column} {'>' if self.above else '≤'} {self.threshold:.4g}"

    @property
    def key(self) -> tuple[Question, bool | None]:
        """Of conditions with the same key a later one is stricter and replaces an earlier one."""
        asks_value = self.question.missing or self.question.value is not None
        return self.question, None if asks_value else self.above

    @property
    def takes_missing(self) -> bool:
        """Whether the tree sends rows without a value to this side."""
        return not self.question.missing and (float(np.float32(self.question.fill)) > self.threshold) == self.above

    def holds(self, table: "polars.DataFrame") -> np.ndarray:
        """For which rows of ``table`` it is true, bool [n]; of a row without a value it is only true that it has none."""
        answers = self.question.answers(table).astype(
            np.float64
        )  # the tree compares with thresholds in double precision
        true = np.asarray((answers > self.threshold) == self.above)
        return true if self.question.missing else true & ~_missing(table[self.question.column])


def table_slices(
    predictions: Predictions, source: Source, groups: Sequence[str], baseline: Predictions | None = None
) -> list[Slice]:
    """The slices of test rows whose error is clearly above average, the highest error first.

    ``baseline`` are predictions of another run for the same examples. ``groups`` are the names of the task's groups.
    """
    table = source.table
    val, test = np.flatnonzero(predictions.split == "val"), np.flatnonzero(predictions.split == "test")
    if table is None or predictions.row is None or len(val) < _FEWEST_ROWS or len(test) < FEW_EXAMPLES:
        return []
    wrong = predictions.wrong
    columns = list(dict.fromkeys([*source.inputs, *source.groups]))
    val_table, test_table = (table.select(columns)[predictions.row[rows]] for rows in (val, test))
    found = []
    for conditions in candidates(val_table, wrong[val]):
        inside, val_inside = (_all_hold(conditions, part) for part in (test_table, val_table))
        size, errors = int(inside.sum()), int(wrong[test][inside].sum())
        interval = wilson(errors, size)
        if size < FEW_EXAMPLES or not interval.low > wrong[test].mean():
            continue
        rest = wrong[test][~inside]
        shares = predictions.member[test][inside].mean(axis=0)
        largest = int(shares.argmax()) if len(shares) else None
        asked = {condition.question.column for condition in conditions}
        found.append(
            Slice(
                description=_described(conditions),
                size=size,
                error=errors / size,
                interval=interval,
                lift=errors / size / float(rest.mean()) if rest.any() else None,
                val_size=int(val_inside.sum()),
                val_error=float(wrong[val][val_inside].mean()),
                baseline_error=None if baseline is None else float(baseline.wrong[test][inside].mean()),
                group=None if largest is None else groups[largest],
                group_share=None if largest is None else float(shares[largest]),
                group_columns=tuple(name for name in source.groups if name in asked),
            )
        )
    return sorted(found, key=lambda one: -one.error)[:_SHOWN]


def broken_slices(predictions: Predictions, source: Source, broken: np.ndarray) -> dict[str, np.ndarray]:
    """Slices in which validation rows are ``broken`` [n] more often than elsewhere: which held-out rows each holds, bool [n]."""
    val = predictions.split == "val"
    if source.table is None or predictions.row is None or val.sum() < _FEWEST_ROWS:
        return {}
    columns = list(dict.fromkeys([*source.inputs, *source.groups]))
    table = source.table.select(columns)[predictions.row]
    slices = candidates(table[np.flatnonzero(val)], broken[val])
    return {_described(conditions): _all_hold(conditions, table) for conditions in slices}


def candidates(table: "polars.DataFrame", wrong: np.ndarray) -> list[list[Condition]]:
    """The parts of a tree's leaves whose share of ``wrong`` [n] is above average, each as the conditions that describe it."""
    questions = _questions(table)
    if not questions or not wrong.any():
        return []
    rng = np.random.default_rng(0)  # not a run's stream: a report of the same run is the same report
    rows = rng.permutation(len(table))[: max(1000, _MOST_ANSWERS // len(questions))]
    part, errors = table[rows], wrong[rows].astype(np.int64)
    answers = np.stack([question.answers(part) for question in questions], axis=1)
    fewest = max(20, len(rows) // 200)
    leaves = _leaves(_grown(answers, errors, fewest), questions)
    found = []
    for conditions in (conditions for leaf in leaves if leaf.conditions for conditions in _parts(leaf.conditions)):
        inside = _all_hold(conditions, part)
        if inside.sum() >= fewest and errors[inside].mean() > errors.mean():
            found.append(conditions)
    return found


def _questions(table: "polars.DataFrame") -> list[Question]:
    """What can be asked of the columns: numbers, whether a cell is missing, and common values."""
    import polars

    questions: list[Question] = []
    for name in table.columns:
        column = table[name]
        missing = _missing(column)
        if missing.mean() > 0.01:
            questions.append(Question(name, None, missing=True))
        if column.dtype.is_numeric() and not (column.dtype.is_integer() and column.n_unique() <= _FLAG):
            middle: Any = column.filter(~missing).median()
            questions.append(Question(name, None, fill=float(middle or 0)))
            continue
        if column.dtype.is_nested():
            continue
        common = column.filter(~missing).cast(polars.String).value_counts(sort=True)[name].to_list()
        if len(common) > len(column) / 2:  # names and free text: no value is common
            continue
        questions += [Question(name, value) for value in common[:_VALUES]]
    return questions


@final
@dataclass(frozen=True)
class _Leaf:
    """``errors`` of ``n`` rows are wrong, which ``conditions`` lead to, the first one at the root."""

    n: int
    errors: int
    conditions: tuple[Condition, ...]

    @property
    def rate(self) -> float:
        return self.errors / self.n


def _grown(answers: np.ndarray, errors: np.ndarray, fewest: int) -> "DecisionTreeRegressor":
    """A tree over the ``answers`` [rows, questions] whose nodes have a share of ``errors``; leaves have the ``fewest`` rows."""
    from sklearn.tree import DecisionTreeRegressor  # imported here because it takes a second

    return DecisionTreeRegressor(max_depth=_DEPTH, min_samples_leaf=fewest, random_state=0).fit(answers, errors)


def _leaves(
    model: "DecisionTreeRegressor", questions: Sequence[Question], node: int = 0, path: tuple[Condition, ...] = ()
) -> list[_Leaf]:
    """The leaves of a tree below ``node``; a split into two leaves whose errors do not clearly differ is undone."""
    tree = model.tree_
    n = int(tree.n_node_samples[node])
    here = _Leaf(n, round(n * float(tree.value[node, 0, 0])), path)
    if tree.children_left[node] < 0:
        return [here]
    question, threshold = questions[tree.feature[node]], float(tree.threshold[node])
    below = [
        _leaves(model, questions, int(child), (*path, Condition(question, threshold, above)))
        for child, above in ((tree.children_left[node], False), (tree.children_right[node], True))
    ]
    if all(len(leaves) == 1 for leaves in below) and not _differ(below[0][0], below[1][0], here.rate):
        return [here]
    return [*below[0], *below[1]]


def _differ(first: _Leaf, second: _Leaf, rate: float) -> bool:
    """Whether the errors of two parts of rows with the error ``rate`` differ by many standard errors."""
    scale = np.sqrt(rate * (1 - rate) * (1 / first.n + 1 / second.n))
    return bool(abs(first.rate - second.rate) > _CLEAR * scale)


def _parts(path: Sequence[Condition]) -> list[list[Condition]]:
    """The leaf at the end of ``path`` in parts: rows that have a value in the columns that it compares, and rows that have none."""
    parts: list[list[list[Condition]]] = []
    for column in dict.fromkeys(condition.question.column for condition in path):
        asked = [condition for condition in path if condition.question.column == column]
        compared = [condition for condition in asked if not condition.question.missing]
        if not compared:
            parts.append([asked])
            continue
        missing = {condition.above for condition in asked if condition.question.missing}
        with_value = [] if True in missing else [compared]
        if False not in missing and all(condition.takes_missing for condition in compared):
            parts.append([*with_value, [Condition(Question(column, None, missing=True), 0.5, above=True)]])
        else:
            parts.append(with_value)
    return [_simplified([condition for part in parts_of for condition in part]) for parts_of in product(*parts)]


def _simplified(path: Sequence[Condition]) -> list[Condition]:
    """The conditions of a path without those that a later one makes stricter."""
    return list({condition.key: condition for condition in path}.values())


def _missing(column: "polars.Series") -> np.ndarray:
    """Which rows have no value, as training reads them, bool [n]."""
    return is_missing(column.fill_nan(None) if column.dtype.is_float() else column).to_numpy()


def _all_hold(conditions: Sequence[Condition], table: "polars.DataFrame") -> np.ndarray:
    return np.asarray(np.logical_and.reduce([condition.holds(table) for condition in conditions]))


def _described(conditions: Sequence[Condition]) -> str:
    """The conditions as one text; where a column has a value, other values that it does not have are left out."""
    equal = {one.question.column for one in conditions if one.question.value is not None and one.above}
    return " and ".join(
        one.text for one in conditions if one.above or one.question.value is None or one.question.column not in equal
    )
