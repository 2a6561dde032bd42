"""Executing a spec."""

import platform
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from umix.bench.epochs import write_epochs
from umix.bench.failure import FAILED
from umix.bench.lock import run_lock
from umix.bench.record import RECORD, RunRecord, SplitCounts, StageRecord, load_run
from umix.bench.run_epochs import epoch_rows
from umix.bench.spec import RunSpec
from umix.core.selection import Counts
from umix.core.streams import torch_stream
from umix.data.image_cache import cached
from umix.data.images import Images
from umix.data.task import Task
from umix.errors import UserError
from umix.files import read_tensors
from umix.methods.method import Method
from umix.nets.net import Net
from umix.nets.registry import net_settings
from umix.train.engine import Engine
from umix.train.history import WATCHED, weights_path
from umix.train.progress import Progress, Silent
from umix.train.trainer import Trainer
from umix.version import __version__

#: The folder beside the runs that holds stages which several runs share.
STAGES = "stages"
#: The folder beside the runs that holds decoded images, unless another is named.
CACHE = "cache"


def execute(
    spec: RunSpec,
    *,
    out: str | Path = "runs",
    root: str | Path | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
    cache: str | Path | None = None,
    stream: bool = False,
    stages: str | Path | None = None,
    on_epoch: Callable[[int, Counts], None] | None = None,
    task: Task | None = None,
    wait: bool = True,
) -> RunRecord:
    """Run ``spec`` and return its record, which is also written to a folder of its own below ``out``.

    A finished run is not repeated, a killed one goes on after its last finished epoch, and both end with the same numbers.
    Where another process is executing the run, this waits for it and returns its record, or raises Busy without ``wait``.
    Images are decoded once into the folder ``cache`` (else ``cache`` below ``out``), or anew in every epoch with ``stream``.
    Stages that runs share lie in the folder ``stages`` (else ``stages`` below ``out``). ``on_epoch(epoch, val)`` sees the
    validation counts after every epoch of the final fit; what it raises ends the run, which then goes on like a killed one.
    ``task`` is what ``spec`` names, where the caller has it loaded already.
    """
    out, plan, progress = Path(out), spec.plan, progress or Silent()
    task = task or plan.source.load(None if root is None else Path(root))
    if (record := finished(spec, out, fingerprint=task.fingerprint)) is not None:
        return record
    require_groups(plan.method, task)
    with run_lock(out, spec.directory_name, wait=wait, note=progress.note):
        if (
            record := finished(spec, out, fingerprint=task.fingerprint)
        ) is not None:  # by the process that had the lock
            return record
        if not stream:
            task = _decoded(task, out / CACHE if cache is None else Path(cache), progress)
        shared = out / STAGES if stages is None else Path(stages)
        return _train(spec, task, out, shared, engine=engine or Engine(), progress=progress, on_epoch=on_epoch)


def require_groups(method: Method, task: Task) -> None:
    """Raise where ``task`` does not have the disjoint groups that ``method`` trains with."""
    if method.needs_groups:
        task.splits["train"].group  # noqa: B018 — raises where there are none
    if method.needs_val_groups:
        task.splits["val"].group  # noqa: B018 — likewise


def finished(spec: RunSpec, out: Path, *, fingerprint: str) -> RunRecord | None:
    """The record of ``spec`` below ``out`` where it is finished; one of data with another ``fingerprint`` is refused."""
    directory = out / spec.directory_name
    if not (directory / RECORD).exists():
        return None
    record = load_run(directory)
    _check_same(record, spec, fingerprint)
    return record


def _train(
    spec: RunSpec,
    task: Task,
    out: Path,
    stages: Path,
    *,
    engine: Engine,
    progress: Progress,
    on_epoch: Callable[[int, Counts], None] | None,
) -> RunRecord:
    plan, directory = spec.plan, out / spec.directory_name
    trainer = Trainer(
        task,
        plan.net,
        plan.fit,
        plan.stages,
        seed=spec.seed,
        groups=plan.method.needs_groups,
        directory=directory,
        cache=stages,
        engine=engine,
        progress=progress,
        on_epoch=on_epoch,
    )
    for note in task.notes:
        trainer.warn(note)
    plan.method.train(trainer)
    if task.preprocessing is not None:
        task.preprocessing.save(directory)
    record = RunRecord(
        task=spec.task,
        method=spec.method,
        seed=spec.seed,
        settings=spec.settings,
        plan=plan.as_json(),
        key=spec.key,
        fingerprint=task.fingerprint,
        groups=list(task.groups),
        classes=list(task.classes),
        input_shape=list(trainer.example.shape),
        train_sizes=task.splits["train"].groups.sizes.tolist(),
        split_counts={name: SplitCounts.of(trainer.history.counts(name)) for name in WATCHED},
        stages={name: StageRecord(**asdict(report)) for name, report in trainer.reports.items()},
        warnings=trainer.warnings,
        decisions=trainer.decisions,
        versions={
            "umix": __version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
        },
    )
    write_epochs(directory, epoch_rows(trainer))
    record.save(directory)
    for left in ("checkpoint.safetensors", FAILED):
        (directory / left).unlink(missing_ok=True)
    return record


def _decoded(task: Task, directory: Path, progress: Progress) -> Task:
    """``task`` with its images, if it has any, decoded once into ``directory``."""
    total = sum(len(split) for split in task.splits.values() if isinstance(split.x, Images))
    if not total:
        return task
    progress.start("decode", total=total, done=0)
    try:
        return cached(task, directory, announce=progress.note, advance=progress.advance)
    finally:
        progress.finish()


def _check_same(record: RunRecord, spec: RunSpec, fingerprint: str) -> None:
    if record.key != spec.key:
        raise UserError(
            f"{record.directory} must hold the run {spec.key}, got the record of {record.key}; delete or move it."
        )
    if record.fingerprint != fingerprint:
        raise UserError(
            f"{record.directory} was run on other data than {spec.task} gives now; delete or move it to run again on these."
        )


def load_net(record: RunRecord, *, select: str | None = None) -> Net:
    """The trained net of a finished run, in evaluation mode, at the epoch that the rule ``select`` chooses on validation."""
    options = dict(record.plan["net"])
    with torch_stream(record.seed, "load", "init"):
        net = net_settings(options.pop("name"), **options).build(torch.zeros(record.input_shape), len(record.classes))
    tensors, _ = read_tensors(weights_path(record.directory, record.best_epoch(select)), kind="weights")
    net.load_state_dict(tensors)
    return net.eval()
