"""What a run knows of its training examples, as a table that can be joined to the user's data."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from umix.array_layout import Array, misfit
from umix.bench.runs.record import RunRecord
from umix.bench.runs.stored_table import read_training_rows
from umix.errors import UserError
from umix.files import read_arrays
from umix.run_folder import EXAMPLES

if TYPE_CHECKING:
    import polars

_LARGEST = 1e30  # number that is kept of an example: squares of them can be summed
_KEPT = ("uncertainty", "weight", "environment", "predicted_group", "biased_class")


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

    known = (codes >= 0) & (codes < len(names))
    texts = np.array([*names, None], dtype=object)[np.where(known, codes, -1)]
    return polars.Series(texts.tolist(), dtype=polars.String)


def load_examples(record: RunRecord) -> "polars.DataFrame":
    """The example table of a finished run."""
    import polars

    kept = read_examples(record)
    if kept is None:
        raise no_weights(record)
    rows = read_training_rows(record, len(kept["label"]))
    return example_table(record, polars.DataFrame({"label": kept["label"]}) if rows is None else rows, kept)


def read_examples(record: RunRecord) -> dict[str, np.ndarray] | None:
    """What the run keeps of its training examples, [n] each, by name; None where its method keeps nothing."""
    path = record.directory / EXAMPLES
    if not path.exists():
        return None
    kept, _ = read_arrays(path, kind="examples")
    layout = {
        "label": Array("whole", ("n",), low=0, high=len(record.classes) - 1),
        "uncertainty": Array("real", ("n",), low=-_LARGEST, high=_LARGEST, optional=True),
        "weight": Array("real", ("n",), low=0, high=_LARGEST, optional=True),
        "environment": Array("whole", ("n",), optional=True),
        "predicted_group": Array("whole", ("n",), optional=True),
        "biased_class": Array("whole", ("n",), optional=True),
    }
    if fault := misfit(kept, layout):
        raise UserError(f"{path} must be about the examples of the run, but {fault}; delete the run and run it again.")
    return kept


def no_weights(record: RunRecord) -> UserError:
    """The error for a run whose method keeps nothing of single training examples."""
    return UserError(
        f"The run {record.key} must keep weights or groups of its training examples to show them, but {record.method} keeps none; "
        "try a umix run."
    )
