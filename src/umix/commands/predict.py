"""``umix predict``."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from umix.flags import Select
from umix.terminal import ERR, OUT


def predict(
    run: Annotated[Path, Parameter(help="Folder of a finished run on data of your own.")],
    new: Annotated[
        Path, Parameter(help="New data of the same kind, e.g. a table with the columns of the training table.")
    ],
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"], help="A .parquet or .csv file.")] = Path(
        "predictions.parquet"
    ),
    select: Select = None,
) -> None:
    """Write the predicted label and the probability of every class for each example in NEW, and its id where RUN has one."""
    from umix.bench.predict import write_predictions
    from umix.bench.record import load_run

    record = load_run(run)
    made = write_predictions(record, new, output, select=select)
    for note in made.notes:
        ERR.print(f"note: {note}", highlight=False, markup=False)
    columns = ", ".join(made.table.columns[:6]) + (", …" if made.table.width > 6 else "")
    OUT.print(
        f"{len(made.table)} predictions written to {output} ({columns})", highlight=False, soft_wrap=True, markup=False
    )
