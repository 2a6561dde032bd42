"""What a run knows of its training examples, as a table."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from umix.array_layout import Array, misfit
from umix.bench.runs.record import RunRecord, load_run
from umix.data.rows.table_file import check_output, write_table
from umix.errors import UserError
from umix.files import read_arrays
from umix.run_folder import EXAMPLES

if TYPE_CHECKING:
    import polars

_LARGEST = 1e30  # number that is kept of an example: squares of them can be summed
_COLUMNS = ("uncertainty", "weight", "environment", "predicted_group", "biased_class", "label")


def example_table(tensors: Mapping[str, Any]) -> "polars.DataFrame":
    """A row per training example: index, label, and what the method has: uncertainty, weight, environment, group or class."""
    import polars

    columns: dict[str, Any] = {"index": range(len(tensors["label"]))}
    columns |= {name: np.asarray(tensors[name]) for name in _COLUMNS if name in tensors}
    return polars.DataFrame(columns)


def load_examples(record: RunRecord) -> "polars.DataFrame":
    """The example table of a finished run."""
    kept = read_examples(record)
    if kept is None:
        raise no_weights(record)
    return example_table(kept)


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


def write_examples(run: Path, output: Path) -> tuple[int, list[str]]:
    """Write the example table of ``run`` to ``output``; returns how many rows and which columns it has."""
    record = load_run(run)
    check_output(output)
    table = load_examples(record)
    write_table(table, output)
    return len(table), table.columns
