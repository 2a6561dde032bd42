"""The table of a run's epochs, ``epochs.csv``: one row per stage, epoch, split and measure, so that any tool can plot it.

``measure`` is risk, learning_rate, seconds, lambda or effective_sample_size (all of ``train``), or a rate: average, worst,
group_rate and class_rate, whose ``name`` is the group or class and which have ``hits`` and ``size`` beside the rate. Rates are by
argmax; what a run reports, with the decision that validation chose, is its summary.
The training split has rates where a first stage recorded them. What is not known has no row.
"""

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, final

from umix.core.epoch_counts import Counts
from umix.core.judging import worst_unit
from umix.errors import UserError
from umix.files import reading, write_whole
from umix.run_folder import EPOCHS

RATES = ("average", "worst", "group_rate", "class_rate")
COLUMNS = ("stage", "epoch", "split", "measure", "name", "value", "hits", "size")


@final
class EpochRow(NamedTuple):
    """One number of one epoch."""

    stage: str
    epoch: int
    split: str
    measure: str
    value: float
    name: str = ""
    hits: int | None = None
    size: int | None = None

    @property
    def tag(self) -> str:
        """What loggers call the number; a rate says that it is by argmax.

        >>> EpochRow("fit", 0, "val", "group_rate", 0.5, name="red 1").tag
        'fit/val/argmax/group_rate/red 1'
        """
        decided = "argmax" if self.measure in RATES else ""
        return "/".join(part for part in (self.stage, self.split, decided, self.measure, self.name) if part)


def measure_rows(stage: str, epochs: Sequence[Mapping[str, float]], **constant: float) -> Iterator[EpochRow]:
    """The rows of a fit's log and of what is the same in every epoch; a NaN is not known and has none."""
    for epoch, measures in enumerate(epochs):
        for measure, value in {**measures, **constant}.items():
            if not math.isnan(value):
                yield EpochRow(stage, epoch, "train", measure, value)


def rate_rows(
    stage: str, split: str, counts: Counts, *, groups: Sequence[str], classes: Sequence[str]
) -> Iterator[EpochRow]:
    """The rows of a split's rates in every epoch; empty groups and classes have none."""
    overall: dict[str, list[float]] = {}
    if counts.n:
        overall["average"] = (counts.all_hits / counts.n).tolist()
    if counts.sizes.any():
        overall["worst"] = [worst_unit(counts.units(epoch)).rate for epoch in range(counts.epochs)]
    units = [
        ("group_rate", groups, counts.hits.tolist(), counts.sizes.tolist()),
        ("class_rate", classes, counts.class_hits.tolist(), counts.class_sizes.tolist()),
    ]
    for epoch in range(counts.epochs):
        for measure, rate in overall.items():
            yield EpochRow(stage, epoch, split, measure, rate[epoch])
        for kind, names, hits, sizes in units:
            for name, h, n in zip(names, hits[epoch], sizes, strict=True):
                if n:
                    yield EpochRow(stage, epoch, split, kind, h / n, name, h, n)


def write_epochs(directory: Path, rows: Iterable[EpochRow]) -> None:
    """Write ``rows`` into the run's folder, whole or not at all."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    table.writerows(map(attrgetter(*COLUMNS), rows))  # None becomes an empty cell
    write_whole(directory / EPOCHS, text.getvalue().encode())


def read_epochs(directory: str | Path) -> list[EpochRow]:
    """The rows of the run in ``directory``."""
    path = Path(directory) / EPOCHS
    if not path.exists():
        raise UserError(
            f"The run {directory} has no {EPOCHS}: it is not finished, or an earlier version of umix made it; run it again."
        )
    with reading(path, "table", fix="delete the run and run it again"):
        return _parsed(path.read_text(encoding="utf-8"), path)


def _parsed(text: str, path: Path) -> list[EpochRow]:
    table = csv.DictReader(io.StringIO(text, newline=""))
    if tuple(table.fieldnames or ()) != COLUMNS:
        raise UserError(f"{path} must have the columns {', '.join(COLUMNS)}; delete the run and run it again.")
    return [
        EpochRow(
            row["stage"],
            int(row["epoch"]),
            row["split"],
            row["measure"],
            float(row["value"]),
            row["name"],
            int(row["hits"]) if row["hits"] else None,
            int(row["size"]) if row["size"] else None,
        )
        for row in table
    ]
