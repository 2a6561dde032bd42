"""One fit: runs the training loop epoch by epoch, calls an observer after every epoch and writes a checkpoint now and then.

An estimator is fitted by ``estimator_fit`` instead.
"""

import time
from dataclasses import replace
from functools import partial

from umix.checkpoint_pace import CheckpointPace, CheckpointTimer
from umix.core.streams import stream, torch_stream
from umix.data.loader import batches, n_batches
from umix.data.samplers import Sampler
from umix.data.task import Split
from umix.models.estimators.estimator import Fitted
from umix.models.net import Net
from umix.run_folder import CHECKPOINT
from umix.store import ensure_writable, load_or_none, sweep
from umix.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint, share_checkpoint
from umix.training.engine import Engine
from umix.training.estimator_fit import fit_estimator
from umix.training.loop import Step, run_epoch
from umix.training.objective import Objective, State
from umix.training.progress import EpochLog, Observer, Progress
from umix.training.stage import Stage, StageReport


def fit(
    stage: Stage,
    net: Net,
    train: Split,
    objective: Objective,
    *,
    n_groups: int,
    sampler: Sampler,
    step: Step,
    observer: Observer,
    log: EpochLog,
    engine: Engine,
    progress: Progress,
    pace: CheckpointPace,
    until: int | None = None,
) -> tuple[StageReport, State]:
    """Train ``net`` in place for all epochs of ``stage``, or resume it from its checkpoint; a report and the last state.

    With ``until`` only so many epochs are trained now; a later call goes on from the checkpoint.
    """
    if isinstance(net.body, Fitted):
        report = fit_estimator(
            stage,
            net,
            train,
            objective,
            sampler=sampler,
            observer=observer,
            log=log,
            progress=progress,
            until=until,
        )
        return report, {}
    began, settings = time.perf_counter(), stage.settings
    optimizer = settings.make_optimizer(net)
    state: State = {name: tensor.to(engine.device) for name, tensor in objective.init(n_groups).items()}

    def restore(found: Checkpoint) -> None:
        observer.restore(found.epochs, found.history)  # first: it may refuse a checkpoint that its own file is behind
        log.restore(found.epochs, found.history)

    done, found = 0, None
    if stage.directory is not None:
        ensure_writable(stage.directory)
        sweep(stage.directory)
        path = stage.directory / CHECKPOINT
        load = partial(load_checkpoint, path, fit=stage.key, net=net, optimizer=optimizer, restore=restore)
        found = load_or_none(path, load, again=f"the stage {stage.name} starts again", warn=progress.note)
    found = share_checkpoint(found, net, optimizer, engine)
    if found is not None:
        done, state = found.epochs, found.state
        if not engine.first:
            restore(found)
    prepared = engine.prepare(net, optimizer, precision=settings.precision)
    prepared = replace(prepared, backward=log.watching(prepared.backward))
    steps = n_batches(sampler.size(train), settings.batch_size)
    lr_at = settings.lr_course(steps * settings.epochs, objective.lr_milestones)
    last = settings.epochs if until is None else min(until, settings.epochs)
    progress.start(stage.name, total=steps * last, done=min(steps * done, steps * last))
    timer = CheckpointTimer(pace)
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
                    step=step,
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
