"""``umix evaluate``."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from umix.commands.flags import Json, Quiet, ReadThreshold, Select, TrustCode
from umix.commands.predict import opened
from umix.terminal import OUT, Bars, print_json


def evaluate(
    run: Annotated[Path, Parameter(help="Folder of a finished run on data of your own, or the beginning of its name.")],
    data: Annotated[
        Path | None,
        Parameter(
            allow_leading_hyphen=True,
            help="Labelled data of the same kind, with the same columns for label and groups; - for CSV from standard input. "
            "Default: the test rows of the data that RUN was trained on.",
        ),
    ] = None,
    *,
    importance: Annotated[
        bool, Parameter(negative="", help="Tables: also which columns matter, overall and for the worst group.")
    ] = False,
    metadata: Annotated[Path | None, Parameter(help="Images: their table, if it is not in the folder.")] = None,
    rows: Annotated[Path | None, Parameter(help="Arrays: table with label and groups of each row of DATA.")] = None,
    select: Select = None,
    threshold: ReadThreshold = None,
    trust_code: TrustCode = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Show how RUN does on labelled new DATA, group by group, beside its rates on test, and what has moved since training.

    With --importance the columns are also kept in the folder of RUN, and umix report shows them.
    """
    from umix.bench.runs.record import load_run
    from umix.data.rows.table_file import check_data_file

    record = load_run(run)
    if data is not None:
        check_data_file(str(data))
    bars = Bars(quiet=quiet)
    bars.label = record.directory.name
    bars.status("loading packages")
    with bars:
        from umix.api.evaluate import evaluate as evaluated

        result = evaluated(
            record,
            None if data is None else opened(data),
            importance=importance,
            metadata=metadata,
            rows=rows,
            select=select,
            threshold=threshold,
            progress=bars,
            trust_code=trust_code,
        )
    if as_json:
        print_json(result.model_dump(mode="json"))
        return
    OUT.print(result.shown)
