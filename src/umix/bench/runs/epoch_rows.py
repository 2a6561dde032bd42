"""What a trainer knows of its epochs, as rows of the run's table."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from umix.bench.runs.epoch_table import EpochRow, measure_rows, rate_rows
from umix.core.counts import class_counts, group_counts
from umix.core.epoch_counts import Counts
from umix.core.weights import effective_sample_size
from umix.data.task import Split, Task
from umix.run_folder import trajectory_path
from umix.training.history import WATCHED
from umix.training.stage import FINAL
from umix.training.trainer import Trainer
from umix.training.trajectory import Trajectory


def epoch_rows(trainer: Trainer) -> Iterator[EpochRow]:
    """The rows of every stage of a run that has ended: its fits, its first stage's training rates, its counts."""
    task = trainer.task
    names = {"groups": task.groups, "classes": task.classes}
    weight = trainer.kept.get("weight")
    for stage in trainer.reports:
        own = {"effective_sample_size": effective_sample_size(weight)} if stage == FINAL and weight is not None else {}
        yield from measure_rows(stage, trainer.logs[stage].rows(), **own)
        path = None if trainer.directory is None else trajectory_path(trainer.directory, stage)
        if path is not None and path.exists():
            counts = replace(trajectory_counts(Trajectory.load(path), task), judging=trainer.judging)
            yield from rate_rows(stage, "train", counts, **names)
    for split in WATCHED:
        yield from rate_rows(FINAL, split, trainer.history.counts(split), **names)


def trajectory_counts(trajectory: Trajectory, task: Task) -> Counts:
    """Hits of the training split in every epoch of ``trajectory``; an example that was not visited is no hit."""
    train = task.splits["train"]
    found = [_epoch_hits(trajectory, epoch, train, task.n_classes) for epoch in range(trajectory.epochs)]
    groups = len(train.groups.names)
    return Counts(
        hits=np.array([hits for hits, _ in found], dtype=np.int64).reshape(len(found), groups),
        sizes=train.groups.sizes.numpy(),
        class_hits=np.array([hits for _, hits in found], dtype=np.int64).reshape(len(found), task.n_classes),
        class_sizes=torch.bincount(train.y, minlength=task.n_classes).numpy(),
    )


def _epoch_hits(trajectory: Trajectory, epoch: int, train: Split, n_classes: int) -> tuple[list[int], list[int]]:
    correct = torch.cat([block[:, 0] == 1 for block in trajectory.window(start=epoch, length=1)])
    classes = class_counts(correct, train.y, n_classes=n_classes)[0]
    return group_counts(correct, train.member_float)[0].tolist(), classes.tolist()
