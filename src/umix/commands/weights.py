"""``umix weights``."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from umix.commands.flags import Output
from umix.terminal import OUT


def weights(
    run: Annotated[Path, Parameter(help="Folder of a finished run, or the beginning of its name.")],
    *,
    id: Annotated[
        str | None, Parameter(help="Column of the table that was trained on, whose values are written too.")
    ] = None,
    output: Output = Path("weights.parquet"),
) -> None:
    """Write uncertainty, weight, label and group of every training example of RUN, and what its method has inferred.

    The column row counts the rows of the table that was trained on from 0, without its header, as pandas does. Of images, file is
    the path.
    """
    from umix.bench.runs.example_tables import load_examples
    from umix.bench.runs.record import load_run
    from umix.data.rows.table_file import check_output, write_table
    from umix.reports.page.training_table import with_id

    record = load_run(run)
    check_output(output)
    table = with_id(load_examples(record), record, id)
    write_table(table, output)
    note = "" if "weight" in table.columns else "; its method gives examples no weights"
    OUT.print(
        f"{len(table)} training examples written to {output} ({', '.join(table.columns)}){note}",
        highlight=False,
        soft_wrap=True,
        markup=False,
    )
