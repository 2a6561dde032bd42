"""A fit of an estimator: to weighted rows in one go, and looked at stage by stage afterwards.

What an objective and a sampler mean for it is a weight of every row: the objective's, times how often the sampler visits the row.
Long fits of libraries that can go on exactly where they stopped are cut into pieces with a checkpoint after each.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from umix.core.streams import stream
from umix.data.samplers import Sampler, Shuffled
from umix.data.task import Split
from umix.errors import UserError
from umix.models.estimators.estimator import EstimatorModel, estimator_threads, threads_for
from umix.models.estimators.library import Floats
from umix.run_folder import CHECKPOINT
from umix.store import ensure_writable, load_or_none, reading, sweep, write_tensors
from umix.training.checkpoint import read_checkpoint
from umix.training.fit_job import FitJob
from umix.training.objective import Objective, State
from umix.training.progress import EpochLog, Observer
from umix.training.stage import Stage, StageReport

_PIECE = 2e9  # rows × columns × stages between two checkpoints: about a minute


def fit_estimator(model: EstimatorModel, job: FitJob) -> tuple[StageReport, State]:
    """Fit the estimator for all epochs of ``job`` and show it to the observer after each; an estimator has no state.

    A fit that was finished before is loaded. One that was killed goes on after its last piece, or starts again.
    """
    began, stage, settings = time.perf_counter(), job.stage, model.settings
    observer, log, progress, last, done = job.observer, job.log, job.progress, job.last, 0
    if stage.directory is not None:
        ensure_writable(stage.directory)
        sweep(stage.directory)
        path = stage.directory / CHECKPOINT
        restore = partial(_restore, path, stage.key, model, observer, log, needed=last)
        done = load_or_none(path, restore, again=f"the stage {stage.name} starts again", warn=progress.note) or 0
    reused = done >= last
    progress.start(stage.name, total=last, done=done)
    threads = threads_for(job.train)
    rows = None if done >= last else _rows(stage, job.train, job.objective, job.sampler)
    while rows is not None and done < last:
        started, to = time.perf_counter(), min(last, done + _piece(model, job.train, last - done))
        seed = int(stream(stage.seed, stage.name, "init").integers(2**31))
        with estimator_threads(threads):
            model.fit(*rows, stages=settings.stages_after(to), seed=seed)
        seconds = (time.perf_counter() - started) / (to - done)
        ends = [min(model.stages, settings.stages_after(epoch + 1)) for epoch in range(done, to)]
        for epoch, look in zip(range(done, to), model.looks(ends, threads=threads), strict=True):
            log.end_epoch(learning_rate=float("nan"), seconds=seconds)
            with one_torch_thread():
                observer.observe(look, epoch)
        progress.advance(to - done)
        done = to
        observer.write()
        if stage.directory is not None:
            _save(stage.directory / CHECKPOINT, stage.key, done, model, observer, log)
    progress.finish()
    return StageReport(stage.key, last, time.perf_counter() - began, reused=reused), {}


def row_weights(objective: Objective, sampler: Sampler, train: Split, rng: np.random.Generator) -> Floats | None:
    """What every training row counts for, float64 [n]; None where all count the same.

    A sampler counts by the visits of one epoch.
    """
    weights = objective.example_weights
    if weights is None:
        raise UserError(
            f"{type(objective).__name__} must be minimised by gradient steps, which trees and other estimators do not take; take a "
            "net, or an objective that only weighs examples."
        )
    parts: list[Tensor] = [] if weights.dim() == 0 else [weights]
    if not isinstance(sampler, Shuffled):
        parts.append(torch.bincount(sampler.draw(train, rng), minlength=len(train)))
    if train.weight is not None:
        parts.append(train.weight)
    if not parts:
        return None
    product: Floats = np.prod([part.cpu().double().numpy() for part in parts], axis=0)
    return product


def inputs_of(train: Split) -> np.ndarray:
    """The inputs of all rows as an array, [n, columns]; raises where examples are no rows of numbers."""
    x = train.x
    if not isinstance(x, Tensor) or x.dim() != 2 or train.transform is not None:
        raise UserError(
            f"Trees and other estimators must be given rows of numbers, got examples of shape {list(train.example.shape)}; take a "
            "net, or features of one."
        )
    return x.cpu().numpy()


def _rows(
    stage: Stage, train: Split, objective: Objective, sampler: Sampler
) -> tuple[np.ndarray, np.ndarray, Floats | None]:
    """Inputs, classes and weights of the rows that count."""
    weight = row_weights(objective, sampler, train, stream(stage.seed, stage.name, "order", 0))
    x, y = inputs_of(train), train.y.cpu().numpy()
    if weight is None or (weight > 0).all():
        return x, y, weight
    there = weight > 0
    return x[there], y[there], weight[there]


def _piece(model: EstimatorModel, train: Split, left: int) -> int:
    """How many epochs are fitted before the next checkpoint."""
    if not model.settings.kind.goes_on:
        return left
    numbers = len(train) * max(1, train.example.numel()) * model.settings.stages_after(1) * model.n_classes
    return max(1, int(_PIECE / numbers))


def _save(path: Path, key: str, epochs: int, net: EstimatorModel, observer: Observer, log: EpochLog) -> None:
    tensors = {f"net/{name}": tensor.contiguous() for name, tensor in net.state_dict().items()}
    kept = {**observer.tensors(), **log.tensors()}
    tensors |= {f"history/{name}": tensor.contiguous() for name, tensor in kept.items()}
    write_tensors(path, tensors, {"kind": "checkpoint", "fit": key, "epochs": str(epochs)})


def _restore(path: Path, key: str, net: EstimatorModel, observer: Observer, log: EpochLog, *, needed: int) -> int:
    """How many epochs the checkpoint at ``path`` has, after net, observer and log were restored from it.

    0 if it has fewer epochs than ``needed`` and the library cannot go on from it.
    """
    epochs, parts, _ = read_checkpoint(path, fit=key)
    if epochs < needed and not net.settings.kind.goes_on:
        return 0
    with reading(path, "checkpoint"):
        observer.restore(epochs, parts["history"])
        log.restore(epochs, parts["history"])
        net.load_state_dict(parts["net"])
    return epochs


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Inside the block torch uses one thread: sums of losses must not depend on their number."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
