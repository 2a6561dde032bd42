"""Executing a spec."""

import platform
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from umix.bench.closer import write_closer
from umix.bench.record import RECORD, RunRecord, SplitCounts, StageRecord, load_run
from umix.bench.spec import RunSpec
from umix.bench.training import image_files, write_training
from umix.core.streams import torch_stream
from umix.data.image_cache import cached
from umix.data.images import Images
from umix.data.task import Task
from umix.errors import UserError
from umix.files import read_tensors
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
) -> RunRecord:
    """Run ``spec`` and return its record, which is also written to a folder of its own below ``out``.

    A finished run is not repeated, a killed one goes on after its last finished epoch, and both end with the same numbers.
    Images are decoded once into the folder ``cache`` (else ``cache`` below ``out``), or anew in every epoch with ``stream``.
    """
    out, plan = Path(out), spec.plan
    directory = out / spec.directory_name
    task = plan.source.load(None if root is None else Path(root))
    if (directory / RECORD).exists():
        record = load_run(directory)
        _check_same(record, spec, task.fingerprint)
        return record
    if plan.method.needs_groups:
        task.splits["train"].group  # noqa: B018 — raises where there are no disjoint training groups
    if plan.method.needs_val_groups:
        task.splits["val"].group  # noqa: B018 — likewise
    files = image_files(task)
    if not stream:
        task = _decoded(task, out / CACHE if cache is None else Path(cache), progress or Silent())
    trainer = Trainer(
        task,
        plan.net,
        plan.fit,
        plan.stages,
        seed=spec.seed,
        groups=plan.method.needs_groups,
        directory=directory,
        cache=out / STAGES,
        engine=engine or Engine(),
        progress=progress or Silent(),
    )
    for note in task.notes:
        trainer.warn(note)
    net = plan.method.train(trainer)
    if task.preprocessing is not None:
        task.preprocessing.save(directory)
    record = RunRecord(
        task=spec.task,
        method=spec.method,
        seed=spec.seed,
        settings=spec.settings,
        preset=spec.preset,
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
    write_training(directory, task.splits["train"], files=files)
    write_closer(directory, trainer, net)
    record.save(directory)
    (directory / "checkpoint.safetensors").unlink(missing_ok=True)
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
