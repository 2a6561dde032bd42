"""The table of a run's epochs, ``epochs.csv``: one row per stage, epoch, split and measure, so that any tool can plot it.

``measure`` is risk, learning_rate, seconds, lambda or effective_sample_size (all of ``train``), or a rate: average, worst,
group_rate and class_rate, whose ``name`` is the group or class and which have ``hits`` and ``size`` beside the rate. Rates are by
argmax; what a run reports, with the threshold that validation chose, is its summary.
The training split has rates where a first stage recorded them. What is not known has no row.
"""

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, final

import numpy as np
import torch

from umix.core.counts import class_counts, group_counts
from umix.core.epoch_counts import Counts
from umix.core.evaluation import worst_unit
from umix.core.weights import effective_sample_size
from umix.data.task import Split, Task
from umix.run_folder import EPOCHS, trajectory_path
from umix.store import atomic_write, reading
from umix.training.context import Context
from umix.training.history import EVAL_SPLITS
from umix.training.stage import FINAL
from umix.training.train_result import TrainResult
from umix.training.trajectory import Trajectory

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


def epoch_rows(context: Context, result: TrainResult) -> Iterator[EpochRow]:
    """The rows of every stage of a run that has ended: its fits, its first stage's training rates, its counts."""
    task = context.task
    names = {"groups": task.groups, "classes": task.classes}
    weight = result.per_example.get("weight")
    for stage in context.journal.reports:
        of_final = (
            {"effective_sample_size": effective_sample_size(weight)} if stage == FINAL and weight is not None else {}
        )
        yield from measure_rows(stage, context.journal.logs[stage].rows(), **of_final)
        path = None if context.directory is None else trajectory_path(context.directory, stage)
        if path is not None and path.exists():
            counts = replace(trajectory_counts(Trajectory.load(path), task), evaluation=result.history.evaluation)
            yield from rate_rows(stage, "train", counts, **names)
    for split in EVAL_SPLITS:
        yield from rate_rows(FINAL, split, result.history.counts(split), **names)


def trajectory_counts(trajectory: Trajectory, task: Task) -> Counts:
    """Hits of the training split in every epoch of ``trajectory``; an example that was not visited is no hit."""
    train = task.splits["train"]
    epochs = [_epoch_hits(trajectory, epoch, train, task.n_classes) for epoch in range(trajectory.epochs)]
    groups = len(train.groups.names)
    return Counts(
        hits=np.array([hits for hits, _ in epochs], dtype=np.int64).reshape(len(epochs), groups),
        sizes=train.groups.sizes.numpy(),
        class_hits=np.array([hits for _, hits in epochs], dtype=np.int64).reshape(len(epochs), task.n_classes),
        class_sizes=torch.bincount(train.y, minlength=task.n_classes).numpy(),
    )


def _epoch_hits(trajectory: Trajectory, epoch: int, train: Split, n_classes: int) -> tuple[list[int], list[int]]:
    correct = torch.cat([block[:, 0] == 1 for block in trajectory.window(start=epoch, length=1)])
    classes = class_counts(correct, train.y, n_classes=n_classes)[0]
    return group_counts(correct, train.member_float)[0].tolist(), classes.tolist()


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
    atomic_write(directory / EPOCHS, text.getvalue().encode())


def read_epochs(directory: str | Path) -> list[EpochRow]:
    """The rows of the run in ``directory``."""
    path = Path(directory) / EPOCHS
    with reading(path, "table"):
        table = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"), newline=""))
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
