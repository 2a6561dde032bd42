"""``umix weights``."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from umix.commands.flags import Output
from umix.terminal import OUT


def weights(
    run: Annotated[Path, Parameter(help="Folder of a finished run.")],
    *,
    output: Output = Path("weights.parquet"),
) -> None:
    """Write index, uncertainty, weight and label of every training example of RUN, and its environment or group if inferred."""
    from umix.bench.runs.example_table import write_examples

    n, columns = write_examples(run, output)
    note = "" if "weight" in columns else "; its method gives examples no weights"
    OUT.print(
        f"{n} training examples written to {output} ({', '.join(columns)}){note}",
        highlight=False,
        soft_wrap=True,
        markup=False,
    )
