"""What a run knows of its training examples, as a table."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from umix.bench.runs.record import RunRecord, load_run
from umix.data.rows.table_file import check_output, write_table
from umix.errors import UserError
from umix.files import read_tensors
from umix.run_folder import EXAMPLES

if TYPE_CHECKING:
    import polars

_COLUMNS = ("uncertainty", "weight", "environment", "predicted_group", "biased_class", "label")


def example_table(tensors: Mapping[str, Any]) -> "polars.DataFrame":
    """A row per training example: index, label, and what the method has: uncertainty, weight, environment, group or class."""
    import polars

    columns: dict[str, Any] = {"index": range(len(tensors["label"]))}
    columns |= {name: tensors[name].numpy() for name in _COLUMNS if name in tensors}
    return polars.DataFrame(columns)


def load_examples(record: RunRecord) -> "polars.DataFrame":
    """The example table of a finished run."""
    path = record.directory / EXAMPLES
    if not path.exists():
        raise no_weights(record)
    tensors, _ = read_tensors(path, kind="examples")
    return example_table(tensors)


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
