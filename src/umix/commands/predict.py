"""``umix predict``."""

from collections import Counter
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from umix.commands.catalogue import print_json
from umix.commands.flags import Json, Output, Quiet, ReadDecide, Select
from umix.terminal import ERR, OUT, Bars


def predict(
    run: Annotated[Path, Parameter(help="Folder of a finished run on data of your own.")],
    new: Annotated[
        Path, Parameter(help="New data of the same kind, e.g. a table with the columns of the training table.")
    ],
    *,
    output: Output = Path("predictions.parquet"),
    select: Select = None,
    decide: ReadDecide = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write the predicted label and the probability of every class for each example in NEW, and its id where RUN has one."""
    from umix.bench.predict import write_predictions
    from umix.bench.runs.record import load_run

    record = load_run(run)
    with Bars(quiet=quiet) as bars:
        bars.label = record.directory.name
        prediction = write_predictions(record, new, output, select=select, decide=decide, progress=bars)
    for note in prediction.notes:
        ERR.print(f"note: {note}", highlight=False, markup=False)
    if as_json:
        times = Counter(prediction.table["label"])
        labels = {name: times[name] for name in record.classes}
        print_json(
            {"rows": len(prediction.table), "output": str(output), "notes": list(prediction.notes), "labels": labels}
        )
        return
    columns = ", ".join(prediction.table.columns[:6]) + (", …" if prediction.table.width > 6 else "")
    OUT.print(
        f"{len(prediction.table)} predictions written to {output} ({columns})",
        highlight=False,
        soft_wrap=True,
        markup=False,
    )
