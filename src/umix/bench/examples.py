"""What a run knows of its training examples, as a table."""

import io
from pathlib import Path
from typing import Any

from umix.bench.record import load_run
from umix.errors import UserError
from umix.files import read_tensors, write_whole

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
    if output.suffix not in (".parquet", ".csv"):
        raise UserError(f"--output must end in .parquet or .csv, got {str(output)!r}.")
    tensors, _ = read_tensors(path, kind="examples")
    columns: dict[str, Any] = {"index": range(len(tensors["label"]))}
    columns |= {name: tensors[name].numpy() for name in _COLUMNS if name in tensors}
    table, content = polars.DataFrame(columns), io.BytesIO()
    if output.suffix == ".csv":
        table.write_csv(content)
    else:
        table.write_parquet(content)
    write_whole(output, content.getvalue())
    return len(table), table.columns
