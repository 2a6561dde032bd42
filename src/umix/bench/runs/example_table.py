"""What a run knows of its training examples, as a table."""

from pathlib import Path
from typing import Any

from umix.bench.runs.record import load_run
from umix.data.rows.table_file import check_output, write_table
from umix.errors import UserError
from umix.files import read_tensors

_COLUMNS = ("uncertainty", "weight", "environment", "label")


def write_examples(run: Path, output: Path) -> tuple[int, list[str]]:
    """Write what ``run`` knows of every training example; returns how many there are and the columns written.

    These are the index, then uncertainty, weight and inferred environment where the method has them, then the label.
    """
    import polars

    record = load_run(run)
    path = record.directory / "examples.safetensors"
    if not path.exists():
        raise UserError(
            f"The run {run} must weigh its training examples to have weights, but {record.method} does not; try a umix run."
        )
    check_output(output)
    tensors, _ = read_tensors(path, kind="examples")
    columns: dict[str, Any] = {"index": range(len(tensors["label"]))}
    columns |= {name: tensors[name].numpy() for name in _COLUMNS if name in tensors}
    table = polars.DataFrame(columns)
    write_table(table, output)
    return len(table), table.columns
