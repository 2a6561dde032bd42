"""Where the model fails, in the words of a table: a shallow tree on uncertainty over the columns, its leaves as slices.

The tree is grown on one half of the training rows and measured on the other, so that a slice is not found in noise. Groups are
not used, but the label is: a model may fail on one class of a slice only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from umix.reports.page.training_table import Source
from umix.reports.training_examples import Training

if TYPE_CHECKING:
    import polars

_MOST_ROWS = 50_000
_VALUES = 20  # of a column, each with a question of its own
_DEPTH = 3
_SHOWN = 6
_WORTH = 0.005  # of the variance of u, which a further condition must explain
_ABOVE = 1.25  # times the mean uncertainty, from which on a leaf is a slice


@final
@dataclass(frozen=True)
class Slice:
    """Examples that share ``description``: how many of the ``measured`` ones, their mean uncertainty, the share that is wrong."""

    description: str
    size: int
    measured: int
    uncertainty: float
    error: float | None
    examples: tuple[int, ...] = ()


@final
@dataclass(frozen=True, eq=False)
class Questions:
    """Yes-or-no and how-much questions about rows: values [n, questions] with the column, and the value where there is one."""

    values: np.ndarray
    asked: Sequence[tuple[str, str | None]]

    def condition(self, place: int, threshold: float, *, above: bool) -> tuple[tuple[str, str | None, bool], str]:
        """The condition on one side of a split: a key, of which a later one replaces an earlier, and its text."""
        column, value = self.asked[place]
        if value is not None:
            return (column, value, True), f"{column} {'=' if above else '≠'} {value}"
        return (column, None, above), f"{column} {'>' if above else '≤'} {threshold:.4g}"


def table_slices(training: Training, source: Source, classes: Sequence[str], label: str) -> list[Slice]:
    """The slices of the table behind ``training``, the most uncertain first; none where no column tells examples apart."""
    if source.rows is None or training.n < 40 or not training.uncertainty.any():
        return []
    from sklearn.tree import DecisionTreeRegressor

    rng = np.random.default_rng(0)  # not a run's stream: a report of the same run is the same report
    rows = rng.permutation(training.n)[:_MOST_ROWS]
    questions = _questions(source.rows.select(source.inputs)[rows], training.label[rows], classes, label)
    u, half = training.uncertainty[rows], len(rows) // 2
    tree = DecisionTreeRegressor(
        max_depth=_DEPTH,
        min_samples_leaf=max(10, half // 200),
        min_impurity_decrease=_WORTH * float(u[:half].var()),
        random_state=0,
    )
    tree.fit(questions.values[:half], u[:half])
    leaf, measured = tree.apply(questions.values[half:]), rows[half:]
    wrong = None if training.correct is None else ~training.correct[-1, measured]
    found = []
    for node, description in _leaves(tree.tree_, questions):
        inside = leaf == node
        if not inside.any() or not description or u[half:][inside].mean() < _ABOVE * u[half:].mean():
            continue
        error = None if wrong is None else float(wrong[inside].mean())
        uncertain = measured[inside][np.argsort(-u[half:][inside], kind="stable")[:3]]
        mean = float(u[half:][inside].mean())
        found.append(Slice(description, int(inside.sum()), len(measured), mean, error, tuple(uncertain.tolist())))
    return sorted(found, key=lambda slice_: -slice_.uncertainty)[:_SHOWN]


def _questions(table: "polars.DataFrame", y: np.ndarray, classes: Sequence[str], label: str) -> Questions:
    import polars

    columns: list[np.ndarray] = []
    asked: list[tuple[str, str | None]] = []
    for number in range(len(classes)) if 2 < len(classes) <= _VALUES else [1] if len(classes) == 2 else []:
        columns.append((y == number).astype(np.float32))
        asked.append((label, classes[number]))
    for name in table.columns:
        column = table[name]
        if column.null_count() > 0.01 * len(column):
            columns.append(column.is_null().to_numpy().astype(np.float32))
            asked.append((name, "missing"))
        if column.dtype.is_numeric():
            middle: Any = column.median()
            columns.append(column.cast(polars.Float32).fill_null(middle or 0).fill_nan(middle or 0).to_numpy())
            asked.append((name, None))
            continue
        if column.dtype.is_nested():
            continue
        values = column.cast(polars.String).fill_null("")
        common = values.value_counts(sort=True)[name].to_list()
        if len(common) > len(column) / 2:  # names and free text: no value is common
            continue
        for value in common[:_VALUES]:
            columns.append((values == value).to_numpy().astype(np.float32))
            asked.append((name, value[:60]))
    matrix = np.stack(columns, axis=1) if columns else np.zeros((len(y), 1), dtype=np.float32)
    limit = np.finfo(np.float32).max
    return Questions(np.clip(np.nan_to_num(matrix), -limit, limit), asked or [("", None)])


def _leaves(tree: Any, questions: Questions) -> list[tuple[int, str]]:
    """The leaves of a tree and what is true of the examples in each."""
    leaves = []
    waiting: list[tuple[int, dict[tuple[str, str | None, bool], str]]] = [(0, {})]
    while waiting:
        node, conditions = waiting.pop()
        if tree.children_left[node] < 0:
            leaves.append((node, _joined(conditions)))
            continue
        place, threshold = int(tree.feature[node]), float(tree.threshold[node])
        for child, above in ((tree.children_left[node], False), (tree.children_right[node], True)):
            key, text = questions.condition(place, threshold, above=above)
            waiting.append((int(child), {**conditions, key: text}))
    return leaves


def _joined(conditions: dict[tuple[str, str | None, bool], str]) -> str:
    """The conditions as one text; where a column is said to be a value, what it is not goes without saying."""
    equal = {key[0] for key, text in conditions.items() if key[1] is not None and f"{key[0]} = " in text}
    return " and ".join(text for key, text in conditions.items() if key[0] not in equal or " ≠ " not in text)
