"""What a run knows of its training examples, as a table."""

import io
from pathlib import Path

from umix.bench.record import load_run
from umix.errors import UserError
from umix.files import read_tensors, write_whole


def write_examples(run: Path, output: Path) -> int:
    """Write index, uncertainty, weight and label of every training example of ``run``; returns how many there are."""
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
    columns = {name: tensors[name].numpy() for name in ("uncertainty", "weight", "label")}
    table = polars.DataFrame({"index": range(len(columns["label"])), **columns})
    content = io.BytesIO()
    if output.suffix == ".csv":
        table.write_csv(content)
    else:
        table.write_parquet(content)
    write_whole(output, content.getvalue())
    return len(table)
