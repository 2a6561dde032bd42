"""A fit of an estimator: to weighted rows in one go, and looked at stage by stage afterwards.

What an objective and a sampler mean for it is a weight of every row: the objective's, times how often the sampler visits the row.
Long fits of libraries that can go on exactly where they stopped are cut into pieces with a checkpoint after each.
"""

import time
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from umix.core.streams import stream
from umix.data.samplers import Sampler, Shuffled
from umix.data.task import Split
from umix.errors import UserError
from umix.files import ensure_writable, reading, sweep, unless_damaged, write_tensors
from umix.nets.estimators.estimator import Fitted
from umix.nets.estimators.library import Floats
from umix.nets.net import Net
from umix.run_folder import CHECKPOINT
from umix.training.at_stage import AtStage
from umix.training.checkpoint import read_checkpoint
from umix.training.epoch_log import EpochLog
from umix.training.estimator_threads import estimator_threads, one_torch_thread, threads_for
from umix.training.objective import Objective
from umix.training.observer import Observer
from umix.training.progress import Progress
from umix.training.stage import Stage, StageReport

_PIECE = 2e9  # rows × columns × stages between two checkpoints: about a minute


def fit_estimator(
    stage: Stage,
    net: Net,
    train: Split,
    objective: Objective,
    *,
    sampler: Sampler,
    observer: Observer,
    log: EpochLog,
    progress: Progress,
    until: int | None = None,
) -> StageReport:
    """Fit the estimator of ``net`` for all epochs of ``stage``, or until so many, and show it to ``observer`` after each.

    A fit that was finished before is loaded. One that was killed goes on after its last piece, or starts again.
    """
    began = time.perf_counter()
    last = stage.settings.epochs if until is None else min(until, stage.settings.epochs)
    done = 0
    if stage.directory is not None:
        ensure_writable(stage.directory)
        sweep(stage.directory)
        path = stage.directory / CHECKPOINT
        restore = partial(_restore, path, stage.key, net, observer, log, needed=last)
        done = unless_damaged(path, restore, again=f"the stage {stage.name} starts again", warn=progress.note) or 0
    reused = done >= last
    progress.start(stage.name, total=last, done=done)
    fitted, threads = fitted_body(net), threads_for(train)
    rows = None if done >= last else _rows(stage, train, objective, sampler)
    while rows is not None and done < last:
        started, to = time.perf_counter(), min(last, done + _piece(fitted, train, last - done))
        seed = int(stream(stage.seed, stage.name, "init").integers(2**31))
        with estimator_threads(threads):
            fitted.fit(*rows, stages=fitted.settings.stages_after(to), seed=seed)
        seconds = (time.perf_counter() - started) / (to - done)
        ends = [min(fitted.stages, fitted.settings.stages_after(epoch + 1)) for epoch in range(done, to)]
        looks = AtStage(net, ends, threads=threads)
        for epoch in range(done, to):
            log.end_epoch(learning_rate=float("nan"), seconds=seconds)
            with one_torch_thread():
                observer.observe(looks.at(epoch - done), epoch)
        progress.advance(to - done)
        done = to
        observer.write()
        if stage.directory is not None:
            _save(stage.directory / CHECKPOINT, stage.key, done, net, observer, log)
    progress.finish()
    return StageReport(stage.key, last, time.perf_counter() - began, reused=reused)


def fitted_body(net: Net) -> Fitted:
    """The estimator that is the body of ``net``."""
    if not isinstance(net.body, Fitted):
        raise TypeError(f"An estimator must be the body of the net, got {type(net.body).__name__}.")
    return net.body


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
    found: Floats = np.prod([part.cpu().double().numpy() for part in parts], axis=0)
    return found


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


def _piece(fitted: Fitted, train: Split, left: int) -> int:
    """How many epochs are fitted before the next checkpoint."""
    if not fitted.settings.kind.goes_on:
        return left
    numbers = len(train) * max(1, train.example.numel()) * fitted.settings.stages_after(1) * fitted.n_classes
    return max(1, int(_PIECE / numbers))


def _save(path: Path, key: str, epochs: int, net: Net, observer: Observer, log: EpochLog) -> None:
    tensors = {f"net/{name}": tensor.contiguous() for name, tensor in net.state_dict().items()}
    kept = {**observer.tensors(), **log.tensors()}
    tensors |= {f"history/{name}": tensor.contiguous() for name, tensor in kept.items()}
    write_tensors(path, tensors, {"kind": "checkpoint", "fit": key, "epochs": str(epochs)})


def _restore(path: Path, key: str, net: Net, observer: Observer, log: EpochLog, *, needed: int) -> int:
    """How many epochs the checkpoint at ``path`` has, after net, observer and log were restored from it.

    0 if it has fewer epochs than ``needed`` and the library cannot go on from it. Raises UserError where it does not fit.
    """
    epochs, parts, _ = read_checkpoint(path, fit=key)
    if epochs < needed and not fitted_body(net).settings.kind.goes_on:
        return 0
    with reading(path, "checkpoint"):
        observer.restore(epochs, parts["history"])
        log.restore(epochs, parts["history"])
        net.load_state_dict(parts["net"])
    return epochs
