"""One fit: runs the training loop epoch by epoch, calls an observer after every epoch and writes a checkpoint now and then.

``fit`` is a generic function: nets are trained here, estimators by ``estimator_fit``.
"""

import time
from dataclasses import replace
from functools import partial, singledispatch

from umix.checkpoint_pace import CheckpointTimer
from umix.core.streams import stream, torch_stream
from umix.data.loader import batches, n_batches
from umix.models.estimators.estimator import EstimatorModel
from umix.models.model import Model
from umix.models.net import Net
from umix.run_folder import CHECKPOINT
from umix.store import ensure_writable, load_or_none, sweep
from umix.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint, share_checkpoint
from umix.training.estimator_fit import fit_estimator
from umix.training.fit_job import FitJob
from umix.training.loop import run_epoch
from umix.training.objective import State
from umix.training.stage import StageReport


@singledispatch
def fit(model: Model, job: FitJob) -> tuple[StageReport, State]:
    """Train ``model`` in place for the epochs of ``job``, or resume it from its checkpoint; a report and the last state."""
    raise TypeError(f"A kind of model must be registered with fit, got {type(model).__name__}.")


fit.register(EstimatorModel, fit_estimator)


@fit.register(Net)
def fit_net(net: Net, job: FitJob) -> tuple[StageReport, State]:
    """Train ``net`` by gradient steps."""
    stage, train, objective, sampler = job.stage, job.train, job.objective, job.sampler
    observer, log, engine, progress = job.observer, job.log, job.engine, job.progress
    began, settings = time.perf_counter(), stage.settings
    optimizer = settings.make_optimizer(net)
    state: State = {name: tensor.to(engine.device) for name, tensor in objective.init(job.n_groups).items()}

    def restore(stored: Checkpoint) -> None:
        observer.restore(stored.epochs, stored.history)  # first: it may refuse a checkpoint that its own file is behind
        log.restore(stored.epochs, stored.history)

    done, stored = 0, None
    if stage.directory is not None:
        ensure_writable(stage.directory)
        sweep(stage.directory)
        path = stage.directory / CHECKPOINT
        load = partial(load_checkpoint, path, fit=stage.key, net=net, optimizer=optimizer, restore=restore)
        stored = load_or_none(path, load, again=f"the stage {stage.name} starts again", warn=progress.note)
    stored = share_checkpoint(stored, net, optimizer, engine)
    if stored is not None:
        done, state = stored.epochs, stored.state
        if not engine.first:
            restore(stored)
    prepared = engine.prepare(net, optimizer, precision=settings.precision)
    prepared = replace(prepared, backward=log.watching(prepared.backward))
    steps = n_batches(sampler.size(train), settings.batch_size)
    lr_at = settings.lr_course(steps * settings.epochs, objective.lr_milestones)
    last = job.last
    progress.start(stage.name, total=steps * last, done=min(steps * done, steps * last))
    timer = CheckpointTimer(job.pace)
    with engine.threads(net):
        for epoch in range(done, last):
            started = time.perf_counter()
            order = sampler.at(epoch / settings.epochs).draw(train, stream(stage.seed, stage.name, "order", epoch))
            visited = batches(
                train,
                order,
                batch_size=settings.batch_size,
                first_step=epoch * steps,
                groups=objective.needs_groups,
                augment=stream(stage.seed, stage.name, "augment", epoch),
            )
            with torch_stream(stage.seed, stage.name, engine.noise, epoch):
                state = run_epoch(
                    prepared,
                    visited,
                    objective,
                    state,
                    stream(stage.seed, stage.name, "objective", epoch),
                    step=job.step,
                    lr_at=lr_at,
                    clip_norm=settings.clip_norm,
                    tick=progress.advance,
                )
            log.end_epoch(learning_rate=optimizer.param_groups[0]["lr"], seconds=time.perf_counter() - started)
            observer.observe(prepared.net, epoch)
            if stage.directory is not None and (epoch + 1 == last or timer.is_due):
                with timer.writing():
                    observer.write()
                    checkpoint = Checkpoint(epoch + 1, state, {**observer.tensors(), **log.tensors()})
                    save_checkpoint(
                        stage.directory / CHECKPOINT, fit=stage.key, checkpoint=checkpoint, net=net, optimizer=optimizer
                    )
    progress.finish()
    seconds = time.perf_counter() - began
    return StageReport(stage.key, last, seconds, reused=done >= last), state
