"""The trajectory of an estimator: was a row predicted correctly by the model of the first stages that was fitted without it?

Fitted values memorise: what a boosted model says of rows that it has seen tells little about how hard they are. So training rows
are divided into folds, a model is fitted to all folds but one, and its stages predict that one. Rows of other splits are dealt out
to the models. An estimator without stages has a trajectory too: every epoch is a division of its own, so that the uncertainty is
that of an ensemble, as in the appendix of the paper.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from umix.core.streams import stream
from umix.core.subsets import stratified_folds
from umix.data.task import Split
from umix.models.estimators.estimator import EstimatorModel, EstimatorSettings, estimator_threads, threads_for
from umix.run_folder import ANY_FOLD, TRAJECTORY, fold_path, trajectory_path
from umix.store import ensure_writable, load_or_none, locked, read_tensors, remove, write_tensors
from umix.training.estimator_fit import inputs_of
from umix.training.progress import Progress
from umix.training.stage import Record, Stage, StageReport, recorded_splits
from umix.training.trajectory import Trajectory

if TYPE_CHECKING:
    from umix.training.context import Context


def cross_fitted_trajectory(
    settings: EstimatorSettings, context: "Context", stage: Stage, *, record: Record
) -> Trajectory:
    """The trajectory of ``stage``; ``record`` makes no difference, because rows are predicted by models that have not seen them."""
    return _trajectory_in(settings, context, stage)


def cross_fitted_hits(
    settings: EstimatorSettings, context: "Context", stage: Stage, splits: tuple[str, ...]
) -> dict[str, Tensor]:
    """Whether each example is predicted correctly in the last epoch of ``stage`` by a model that has not seen it, bool [n]."""
    whole = _trajectory_in(settings, context, stage)
    if context.directory is not None:
        whole.save(trajectory_path(context.directory, stage.name))
    parts = {"train": whole, "val": whole.val, "test": whole.test}
    return {name: ~part.uncertainty(start=part.epochs - 1, length=1).bool() for name in splits if (part := parts[name])}


def _trajectory_in(settings: EstimatorSettings, context: "Context", stage: Stage) -> Trajectory:
    context.require_new(stage.name)
    splits = {name: context.splits[name] for name in ("train", *recorded_splits(context.task))}
    with locked(stage.directory):
        trajectory, context.journal.reports[stage.name] = cross_fit(
            stage, settings, splits, n_classes=context.task.n_classes, progress=context.progress
        )
    return trajectory


def cross_fit(
    stage: Stage,
    settings: EstimatorSettings,
    splits: Mapping[str, Split],
    *,
    n_classes: int,
    progress: Progress,
) -> tuple[Trajectory, StageReport]:
    """The trajectory of the epochs of ``stage``, for ``splits``: train, val and, if it is among them, test.

    Every finished fold is kept in the stage's directory, so a killed stage goes on with the next one.
    """
    began, path = time.perf_counter(), None if stage.directory is None else stage.directory / TRAJECTORY
    train, epochs = splits["train"], stage.settings.epochs
    if path is not None:
        read = partial(Trajectory.load, path, fingerprint=train.fingerprint)
        stored = load_or_none(path, read, again=f"the stage {stage.name} starts again", warn=progress.note)
        if stored is not None:
            _remove_folds(path.parent)  # of a process that was killed while it removed them
            return stored, StageReport(stage.key, epochs, time.perf_counter() - began, reused=True)
    if stage.directory is not None:
        ensure_writable(stage.directory)
    staged, threads = bool(settings.kind.stages_option), threads_for(train)
    repeats = 1 if staged else epochs
    ends = [settings.stages_after(epoch + 1) for epoch in range(epochs)] if staged else [1]
    progress.start(stage.name, total=repeats * settings.folds, done=0)
    correct = {name: torch.zeros(epochs, len(split), dtype=torch.bool) for name, split in splits.items()}
    for repeat in range(repeats):
        dealt = _dealt(stage, splits, settings.folds, repeat)
        rows = slice(repeat, repeat + len(ends))
        for fold in range(settings.folds):
            with estimator_threads(threads):
                fold_hits = _fold(
                    stage, settings, splits, dealt, ends, n_classes, fold=fold, repeat=repeat, warn=progress.note
                )
            for name, hits in fold_hits.items():
                correct[name][rows, dealt[name] == fold] = hits
            progress.advance(1)
    progress.finish()
    trajectory = _trajectory(splits, correct)
    if path is not None:
        trajectory.save(path)
        _remove_folds(path.parent)
    return trajectory, StageReport(stage.key, epochs, time.perf_counter() - began, reused=False)


def _remove_folds(directory: Path) -> None:
    """Remove what was kept of single folds, now that the whole trajectory is there."""
    for path in directory.glob(ANY_FOLD):
        remove(path)


def _dealt(stage: Stage, splits: Mapping[str, Split], folds: int, repeat: int) -> dict[str, Tensor]:
    """The fold of every row of every split, [n] each; training rows are stratified by class."""
    folds_of = {}
    for name, split in splits.items():
        rng = stream(stage.seed, stage.name, f"folds/{name}", repeat)
        folds_of[name] = torch.from_numpy(stratified_folds(split.y.cpu().numpy(), folds=folds, rng=rng))
    return folds_of


def _fold(
    stage: Stage,
    settings: EstimatorSettings,
    splits: Mapping[str, Split],
    dealt: Mapping[str, Tensor],
    ends: list[int],
    n_classes: int,
    *,
    fold: int,
    repeat: int,
    warn: Callable[[str], None],
) -> dict[str, Tensor]:
    """Whether each row of this fold is predicted correctly by a model that was fitted to the others, bool [ends, rows] by split."""
    kept = None if stage.directory is None else fold_path(stage.directory, repeat, fold)
    if kept is not None:
        stored = load_or_none(
            kept, partial(read_tensors, kept, kind="fold"), again="this part is fitted again", warn=warn
        )
        if stored is not None:
            return stored[0]
    train = splits["train"]
    others = (dealt["train"] != fold).numpy() if settings.folds > 1 else np.ones(len(train), dtype=bool)
    model = EstimatorModel(settings, n_classes)
    weight = None if train.weight is None else train.weight.cpu().numpy()[others].astype(np.float64)
    seed = int(stream(stage.seed, stage.name, "init", repeat * settings.folds + fold).integers(2**31))
    model.fit(inputs_of(train)[others], train.y.cpu().numpy()[others], weight, stages=ends[-1], seed=seed)
    hits = {}
    for name, split in splits.items():
        part = split.rows((dealt[name] == fold).nonzero(as_tuple=True)[0].to(split.y.device))
        hits[name] = model.split_logits(part, ends).argmax(dim=2) == part.y.cpu()
    if kept is not None:
        write_tensors(kept, hits, {"kind": "fold"})
    return hits


def _trajectory(splits: Mapping[str, Split], correct: Mapping[str, Tensor]) -> Trajectory:
    """The trajectory of hits [epochs, n] of every split."""
    parts = {name: Trajectory(len(split), fingerprint=split.fingerprint) for name, split in splits.items()}
    for name, part in parts.items():
        for row in correct[name]:
            part.see_all(row)
            part.end_epoch()
    whole = parts["train"]
    whole.val, whole.test = parts.get("val"), parts.get("test")
    return whole
