"""Records the trajectory of a stage.

The trajectory of a net is recorded while it trains (``Recorder``). That of an estimator (``cross_fit``) says: was a row predicted
correctly by the model of the first stages that was fitted without it? Fitted values memorise: what a boosted model says of rows
that it has seen tells little about how hard they are. So the training rows are divided into folds, a model is fitted to all folds
but one, and its stages predict that one. Rows of other splits are dealt out to the models. An estimator without stages has a
trajectory too: every epoch is a division of its own, so that the uncertainty is that of an ensemble, as in the appendix of the
paper.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Literal, Self, final

import numpy as np
import torch
from torch import Tensor

from umix.core.streams import stream
from umix.core.subsets import stratified_folds
from umix.data.task import Split
from umix.errors import UserError
from umix.models.estimators.estimator import EstimatorSettings, Fitted
from umix.models.net import Net
from umix.run_folder import ANY_FOLD, TRAJECTORY, fold_path
from umix.store import ensure_writable, load_or_none, read_tensors, remove, write_tensors
from umix.training.engine import Engine
from umix.training.estimator_fit import estimator_threads, inputs_of, stage_logits, threads_for
from umix.training.evaluate import correctness
from umix.training.progress import Progress
from umix.training.stage import Stage, StageReport
from umix.training.trajectory import Trajectory


@final
class Recorder:
    """The observer that ends an epoch of ``trajectory``, and saves it before a checkpoint is written.

    So the file has at least as many epochs as the checkpoint. The predictions of val, and of test
    if it is given, are those of an evaluation pass after every epoch.
    """

    def __init__(
        self,
        trajectory: Trajectory,
        train: Split,
        val: Split,
        path: Path | None,
        *,
        clean_pass: bool,
        batch_size: int,
        test: Split | None = None,
    ) -> None:
        self.trajectory = trajectory
        trajectory.val = trajectory.val or Trajectory(len(val), fingerprint=val.fingerprint)
        self._others = [(trajectory.val, val)]
        if test is not None:
            trajectory.test = trajectory.test or Trajectory(len(test), fingerprint=test.fingerprint)
            self._others.append((trajectory.test, test))
        self._train = train
        self._path = path
        self._clean_pass = clean_pass
        self._batch_size = batch_size

    @classmethod
    def open(
        cls,
        stage: Stage,
        splits: Mapping[str, Split],
        *,
        record: Literal["online", "epoch_end"],
        test: Split | None = None,
        engine: Engine | None = None,
        warn: Callable[[str], None] = lambda message: None,
    ) -> Self:
        """A recorder that continues the trajectory in the stage's directory, if there is one.

        If ``engine`` has several processes, all continue the trajectory of the first. One that is damaged is begun anew, and
        ``warn`` is told.
        """
        train, path = splits["train"], None if stage.directory is None else stage.directory / TRAJECTORY
        trajectory = Trajectory(len(train), fingerprint=train.fingerprint)
        if path is not None:
            known = load_or_none(
                path,
                partial(Trajectory.load, path, fingerprint=train.fingerprint),
                again=f"the stage {stage.name} starts again",
                warn=warn,
            )
            trajectory = trajectory if known is None else known
        batch_size = stage.settings.batch_size
        if engine is not None:
            trajectory = engine.from_first(trajectory)
        clean = record == "epoch_end"
        return cls(trajectory, train, splits["val"], path, clean_pass=clean, batch_size=batch_size, test=test)

    def restore(self, epochs: int, kept: Mapping[str, Tensor]) -> None:
        held = min(self.trajectory.epochs, *(other.epochs for other, _ in self._others))
        if held < epochs:
            raise UserError(
                f"{self._path} must hold the {epochs} epochs of the checkpoint beside it, got {held}; "
                "delete this folder to record the trajectory again."
            )
        self.trajectory.truncate(epochs)

    def observe(self, net: Net, epoch: int) -> None:
        self.trajectory.truncate(epoch)
        if self._clean_pass:
            self.trajectory.see_all(correctness(net, self._train, batch_size=self._batch_size))
        self.trajectory.end_epoch()
        for other, split in self._others:
            other.see_all(correctness(net, split, batch_size=self._batch_size))
            other.end_epoch()

    def write(self) -> None:
        if self._path is not None:
            self.trajectory.save(self._path)

    def tensors(self) -> dict[str, Tensor]:
        return {}


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
        known = load_or_none(path, read, again=f"the stage {stage.name} starts again", warn=progress.note)
        if known is not None:
            _remove_folds(path.parent)  # of a process that was killed while it removed them
            return known, StageReport(stage.key, epochs, time.perf_counter() - began, reused=True)
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
                found = _fold(
                    stage, settings, splits, dealt, ends, n_classes, fold=fold, repeat=repeat, warn=progress.note
                )
            for name, hits in found.items():
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
    found = {}
    for name, split in splits.items():
        rng = stream(stage.seed, stage.name, f"folds/{name}", repeat)
        found[name] = torch.from_numpy(stratified_folds(split.y.cpu().numpy(), folds=folds, rng=rng))
    return found


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
    model = Fitted(settings, n_classes)
    weight = None if train.weight is None else train.weight.cpu().numpy()[others].astype(np.float64)
    seed = int(stream(stage.seed, stage.name, "init", repeat * settings.folds + fold).integers(2**31))
    model.fit(inputs_of(train)[others], train.y.cpu().numpy()[others], weight, stages=ends[-1], seed=seed)
    found = {}
    for name, split in splits.items():
        part = split.rows((dealt[name] == fold).nonzero(as_tuple=True)[0].to(split.y.device))
        found[name] = stage_logits(model, part, ends).argmax(dim=2) == part.y.cpu()
    if kept is not None:
        write_tensors(kept, found, {"kind": "fold"})
    return found


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
