"""A fit of an estimator: to weighted rows in one go, and looked at stage by stage afterwards.

What an objective and a sampler mean for it is a weight of every row: the objective's, times how often the sampler visits the row.
Long fits of libraries that can go on exactly where they stopped are cut into pieces with a checkpoint after each.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast, final

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from umix.core.streams import stream
from umix.data.loader import batches
from umix.data.samplers import Sampler, Shuffled
from umix.data.task import Split
from umix.errors import UserError
from umix.models.estimators.estimator import Fitted
from umix.models.estimators.library import Floats
from umix.models.net import Net
from umix.run_folder import CHECKPOINT
from umix.store import ensure_writable, load_or_none, reading, sweep, write_tensors
from umix.training.checkpoint import read_checkpoint
from umix.training.objective import Objective
from umix.training.progress import EpochLog, Observer, Progress
from umix.training.stage import Stage, StageReport

_PIECE = 2e9  # rows × columns × stages between two checkpoints: about a minute
_AT_ONCE = 2**17  # rows that are predicted at once
_FEW = 2**18  # rows × columns that one thread fits as fast as several


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
        done = load_or_none(path, restore, again=f"the stage {stage.name} starts again", warn=progress.note) or 0
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

    0 if it has fewer epochs than ``needed`` and the library cannot go on from it.
    """
    epochs, parts, _ = read_checkpoint(path, fit=key)
    if epochs < needed and not fitted_body(net).settings.kind.goes_on:
        return 0
    with reading(path, "checkpoint"):
        observer.restore(epochs, parts["history"])
        log.restore(epochs, parts["history"])
        net.load_state_dict(parts["net"])
    return epochs


@final
class AtStage(nn.Module):
    """The net of a fitted estimator, cut after one of ``ends``; the logits of a split are computed once for all of them."""

    def __init__(self, net: Net, ends: Sequence[int], *, threads: int = 1) -> None:
        super().__init__()
        self.net = net
        self._ends = tuple(ends)
        self._threads = threads
        self._place = 0
        self._known: dict[Split, Tensor] = {}

    def at(self, epoch: int) -> Net:
        """This net after ``epoch``, counted from the first of ``ends``."""
        self._place = epoch
        self._fitted.cut = self._ends[epoch]
        return cast(Net, self)

    @property
    def _fitted(self) -> Fitted:
        return cast(Fitted, self.net.body)

    def logits(self, split: Split) -> Tensor:
        """The logits of all examples of ``split``, float32 [n, classes]."""
        if split not in self._known:
            with estimator_threads(self._threads):
                self._known[split] = stage_logits(self._fitted, split, self._ends)
        return self._known[split][self._place].to(split.y.device)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return self.net.state_dict(*args, **kwargs)


def stage_logits(fitted: Fitted, split: Split, ends: Sequence[int]) -> Tensor:
    """The logits of every example of ``split`` by the first ``end`` stages, for each of ``ends``: [ends, n, classes]."""
    found = torch.empty(len(ends), len(split), fitted.n_classes)
    for batch in batches(split, torch.arange(len(split)), batch_size=_AT_ONCE) if len(split) else ():
        found[:, batch.index.cpu()] = fitted.logits_at(batch.x.cpu().numpy(), ends)
    return found


def threads_for(train: Split) -> int:
    """How many threads an estimator is fitted with: as many as torch has, and one where there are few rows.

    The threads of a boosted tree wait for each other at every split, actively: on few rows they only slow each other down, and
    where another process wants their core, by a factor of ten and more.
    """
    return 1 if len(train) * max(1, train.example.numel()) < _FEW else torch.get_num_threads()


@contextmanager
def estimator_threads(count: int) -> Iterator[None]:
    """Inside the block estimators use so many threads."""
    before = torch.get_num_threads()
    try:
        with threadpool_limits(count, user_api="openmp"):
            yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Inside the block torch uses one thread: sums of losses must not depend on their number."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
