"""``umix predict``."""

import signal
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

from cyclopts import Parameter

from umix.commands.flags import Json, Quiet, ReadThreshold, Select, TrustCode
from umix.errors import UserError, one_line
from umix.terminal import ERR, OUT, Bars, OutputClosed, print_json

if TYPE_CHECKING:
    from umix.bench.runs.record import RunRecord
    from umix.bench.runs.summary import Summary
    from umix.core.selection import Threshold

_PIPE = Path("-")


def predict(
    run: Annotated[Path, Parameter(help="Folder of a finished run on data of your own, or the beginning of its name.")],
    new: Annotated[
        Path,
        Parameter(
            allow_leading_hyphen=True,
            help="New data of the same kind, e.g. a table with the columns of the training table; - for CSV from standard input.",
        ),
    ],
    *,
    output: Annotated[
        Path,
        Parameter(
            name=["--output", "-o"],
            allow_leading_hyphen=True,
            help="A .parquet, .csv, .jsonl or .arrow file; - for CSV to standard output.",
        ),
    ] = Path("predictions.parquet"),
    select: Select = None,
    threshold: ReadThreshold = None,
    trust_code: TrustCode = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write the predicted label and the probability of every class for each example in NEW, and its id where RUN has one."""
    from umix.bench.runs.record import load_run
    from umix.data.rows.table_file import check_data_file

    if output == _PIPE and as_json:
        raise UserError("--json must be given with an output file, but the predictions go to standard output.")
    record = load_run(run)
    check_data_file(str(new))
    if output == _PIPE:
        _stream(record, new, select, threshold, quiet=quiet, trust_code=trust_code)
        return
    bars = Bars(quiet=quiet)
    bars.label = record.directory.name
    bars.status("loading packages")
    with bars:
        from umix.bench.predict import write_predictions

        prediction = write_predictions(
            record, opened(new), output, select=select, threshold=threshold, progress=bars, trust_code=trust_code
        )
    summary = record.summary(select, threshold)
    _print_notes(record, summary, prediction.notes)
    if as_json:
        times = Counter(prediction.table["label"])
        labels = {name: times[name] for name in record.classes}
        written = {"rows": len(prediction.table), "output": str(output), "notes": list(prediction.notes)}
        decided = {"threshold": summary.threshold, "calibrated": summary.calibrated}
        print_json({**written, "labels": labels, **decided})
        return
    columns = ", ".join(prediction.table.columns[:6]) + (", …" if prediction.table.width > 6 else "")
    OUT.print(
        f"{len(prediction.table)} predictions written to {output} ({one_line(columns)})",
        highlight=False,
        soft_wrap=True,
        markup=False,
    )


def _stream(
    record: "RunRecord",
    new: Path,
    select: str | None,
    threshold: "Threshold | None",
    *,
    quiet: bool,
    trust_code: bool,
) -> None:
    """Write CSV to standard output, and nothing else; a reader that closes the pipe, such as head, ends it quietly."""
    try:
        with Bars(quiet=quiet) as bars:
            bars.label = record.directory.name
            bars.status("loading packages")
            from umix.bench.predict import stream_predictions

            notes = stream_predictions(
                record,
                opened(new),
                sys.stdout.buffer,
                select=select,
                threshold=threshold,
                progress=bars,
                trust_code=trust_code,
            )
    except BrokenPipeError:
        raise OutputClosed from None
    _print_notes(record, record.summary(select, threshold), notes)


def opened(new: Path) -> Path | IO[bytes]:
    """Standard input for ``-``, other paths as they are."""
    if new != _PIPE:
        return new
    if sys.stdin is None:
        raise UserError("Standard input must be open to be read, but it is closed; name a file.")
    import polars  # noqa: F401 — its handler of Ctrl-C lets a read go on, so that Python would never look at the signal

    signal.siginterrupt(signal.SIGINT, True)
    return sys.stdin.buffer


def _print_notes(record: "RunRecord", summary: "Summary", notes: Sequence[str]) -> None:
    """Print what is to be known of the model and the new data, and why probabilities are not calibrated where they are not."""
    from umix.reports.sentences import calibration_words, fold_words

    calibration = "" if summary.calibrated else calibration_words(record, summary)
    for note in filter(None, [fold_words(record), *notes, calibration]):
        ERR.print(f"note: {one_line(note)}", highlight=False, markup=False, soft_wrap=True)
