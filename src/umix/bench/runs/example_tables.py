"""What a run knows of single examples, as tables that people and other libraries read: names instead of numbers."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from umix.bench.runs.record import RunRecord
from umix.errors import Setting, UserError
from umix.run_folder import ARGMAX_PREDICTIONS, EXAMPLES, PREDICTIONS, TRAINING_ROWS
from umix.store import read_arrays, read_table

if TYPE_CHECKING:
    import polars

_KEPT = ("uncertainty", "weight", "environment", "predicted_group", "biased_class")
#: Columns of the frame of predictions that are not group columns.
_TAKEN = ("row", "file", "label", "prediction", "group")


def example_table(record: RunRecord, rows: "polars.DataFrame", kept: Mapping[str, Any]) -> "polars.DataFrame":
    """A row per training example: where it came from, the names of its label and group, and what the method has ``kept``.

    ``rows`` are those of ``training_rows``. ``file`` is the path of an image. ``row`` is the number of the row in the user's table
    or array, counted from 0. Where neither is known, as in most benchmarks, ``index`` is the place in the training split.
    """
    import polars

    place = next((name for name in ("file", "row") if name in rows.columns), None)
    columns: dict[str, Any] = {"index": range(len(rows))} if place is None else {place: rows[place]}
    columns["label"] = _named(record.classes, rows["label"].to_numpy())
    if "group" in rows.columns:
        columns["group"] = _named(record.groups, rows["group"].to_numpy())
    elif record.groups and "group 0" in rows.columns:
        member = rows.select(f"group {number}" for number in range(len(record.groups))).rows()
        names = ["; ".join(name for name, inside in zip(record.groups, row, strict=True) if inside) for row in member]
        columns["group"] = polars.Series([name or None for name in names], dtype=polars.String)
    columns |= {name: np.asarray(kept[name]) for name in _KEPT if name in kept}
    if "predicted_group" in columns and "group" in rows.columns:
        columns["predicted_group"] = _named(record.groups, columns["predicted_group"])
    if "biased_class" in columns:
        columns["biased_class"] = _named(record.classes, columns["biased_class"])
    return polars.DataFrame(columns)


def _named(names: Sequence[str], codes: np.ndarray) -> "polars.Series":
    """The name of every code [n]; null for a code that has none."""
    import polars

    has_name = (codes >= 0) & (codes < len(names))
    texts = np.array([*names, None], dtype=object)[np.where(has_name, codes, -1)]
    return polars.Series(texts.tolist(), dtype=polars.String)


def load_examples(record: RunRecord) -> "polars.DataFrame":
    """The example table of a finished run."""
    kept = read_examples(record)
    if kept is None:
        raise no_weights(record)
    return example_table(record, read_training_rows(record), kept)


def read_examples(record: RunRecord) -> dict[str, np.ndarray] | None:
    """What the run keeps of its training examples, [n] each, by name; None where its method keeps nothing."""
    path = record.directory / EXAMPLES
    return read_arrays(path, kind="examples")[0] if path.exists() else None


def read_training_rows(record: RunRecord) -> "polars.DataFrame":
    """The table of the training examples of a finished run."""
    return read_table(record.directory / TRAINING_ROWS)


def no_weights(record: RunRecord) -> UserError:
    """The error for a run whose method keeps nothing of single training examples."""
    return UserError(
        f"The run {record.key} must keep weights or groups of its training examples to show them, but {record.method} keeps none; "
        "try a umix run."
    )


def read_held_out(record: RunRecord) -> "polars.DataFrame":
    """The predictions that a finished run keeps, as they are written.

    They are those of ``record.threshold``: a run keeps those of its own threshold and, where it is another, those by argmax.
    """
    is_runs_choice = record.choice() == record.choice(threshold=record.own_threshold)
    if not is_runs_choice and record.threshold != "off":
        raise UserError(
            f"The run {record.directory} keeps its predictions by argmax alone; train it with ",
            Setting("threshold", "tuned"),
            " to have them with chosen biases.",
        )
    return read_table(record.directory / (PREDICTIONS if is_runs_choice else ARGMAX_PREDICTIONS))


def group_column(name: str) -> str:
    """The column of the frame that holds the values of the group column ``name``: its name, unless the frame has one so called."""
    return f"{name} (group)" if name in _TAKEN or name.startswith("p_") else name


def named_frame(record: RunRecord, table: "polars.DataFrame", split: str) -> "polars.DataFrame":
    """Label, prediction, probabilities and groups of every example of ``split``.

    ``label`` and ``prediction`` are names of classes and ``p_CLASS`` is a probability. ``group`` is the name of the group, each
    group column has a column of its own, and what is not known is null. Of groups that overlap, each has a column of its own that
    says who is in it.
    """
    import polars

    if split not in ("val", "test"):
        raise UserError(f"split must be val or test, got {split!r}.")
    rows = table.filter(polars.col("split") == split)
    columns: dict[str, polars.Series] = {}
    for place in ("row", "file"):
        if place in rows.columns:
            columns[place] = rows[place]
    for name in ("label", "prediction"):
        columns[name] = polars.Series([record.classes[code] for code in rows[name]], dtype=polars.String)
    for number, name in enumerate(record.classes):
        if f"p {number}" in rows.columns:
            columns[f"p_{name}"] = rows[f"p {number}"]
    if "group" in rows.columns:
        columns["group"] = polars.Series(
            [record.groups[code] if code >= 0 else None for code in rows["group"]], dtype=polars.String
        )
        for number, column in list(enumerate(record.group_columns))[1:]:
            values = [record.group_parts[code][number] if code >= 0 else None for code in rows["group"]]
            names_column = polars.Series(values, dtype=polars.String)
            stored = f"column {number}"  # is there if a value can be known where the group is not
            columns[group_column(column)] = (
                rows[stored].fill_null(names_column) if stored in rows.columns else names_column
            )
    for number, name in enumerate(record.groups):
        if f"group {number}" in rows.columns:
            columns[name] = rows[f"group {number}"]
    return polars.DataFrame(columns)
