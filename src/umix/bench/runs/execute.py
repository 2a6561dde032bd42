"""Executing a spec."""

import contextlib
import platform
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from umix.bench.runs.example_features import write_closer
from umix.bench.runs.epoch_table import write_epochs
from umix.bench.runs.failure import FAILED
from umix.bench.runs.training_inputs import Inputs, training_inputs
from umix.bench.runs.lock import run_lock
from umix.bench.runs.record import RECORD, RunRecord, StageRecord, load_run
from umix.bench.runs.epoch_rows import epoch_rows
from umix.bench.spec.run_spec import RunSpec
from umix.bench.runs.split_counts import SplitCounts
from umix.bench.runs.training_rows import image_files, write_training
from umix.core.selection import Counts
from umix.core.streams import torch_stream
from umix.data.task import Task
from umix.errors import Setting, UserError
from umix.files import read_tensors
from umix.methods.method import Method
from umix.nets.backbone import Backbone
from umix.nets.net import Net
from umix.nets.registry import net_kind, net_settings
from umix.nets.weight_files import state_hash
from umix.training.engine import Engine
from umix.training.history import WATCHED, weights_path
from umix.training.progress import Progress, Silent
from umix.training.trainer import Trainer
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
    Images are decoded once into the folder ``cache`` (else ``cache`` below ``out``), or anew in every epoch with ``stream``. Of a
    frozen net the features are stored there instead, and only a linear head is trained. Stages that runs
    share lie in the folder ``stages`` (else ``stages`` below ``out``). ``on_epoch(epoch, val)`` sees the validation counts after
    every epoch of the final fit; what it raises ends the run, which then goes on like a killed one.
    ``task`` is what ``spec`` names, where the caller has it loaded already. Several processes that share ``engine`` all call this.
    """
    out, plan, progress, engine = Path(out), spec.plan, progress or Silent(), engine or Engine()
    name = spec.directory_name  # a net whose files cannot be reached is refused here, before the data are looked for
    task = task or plan.source.load(None if root is None else Path(root))
    if (record := _finished_for(engine, spec, out, task)) is not None:
        return record
    require_groups(plan.method, task)
    lock = run_lock(out, name, wait=wait, note=progress.note)
    with lock if engine.first else contextlib.nullcontext():
        record = _finished_for(engine, spec, out, task)  # by the process that had the lock
        if record is not None:
            return record
        store, shared = out / CACHE if cache is None else Path(cache), out / STAGES if stages is None else Path(stages)
        inputs = training_inputs(task, plan, store, seed=spec.seed, stream=stream, engine=engine, progress=progress)
        return _train(spec, task, inputs, out, shared, engine=engine, progress=progress, on_epoch=on_epoch)


def require_groups(method: Method, task: Task) -> None:
    """Raise where ``task`` does not have the disjoint groups that ``method`` trains with."""
    if not task.groups and (method.needs_groups or method.needs_val_groups):
        split = "validation" if method.needs_val_groups else "training"
        raise UserError(
            f"{method.name} needs {split} groups, but the task has none; name their columns with ", Setting("groups"), ", or take a method "
            "that needs none (umix methods)."
        )
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


def _finished_for(engine: Engine, spec: RunSpec, out: Path, task: Task) -> RunRecord | None:
    """The same for all processes of ``engine``: what the first one finds."""
    return engine.from_first(finished(spec, out, fingerprint=task.fingerprint) if engine.first else None)


def _train(
    spec: RunSpec,
    loaded: Task,
    inputs: Inputs,
    out: Path,
    stages: Path,
    *,
    engine: Engine,
    progress: Progress,
    on_epoch: Callable[[int, Counts], None] | None,
) -> RunRecord:
    """The record of ``spec``, trained here and now on ``inputs`` made of the task as it was ``loaded``."""
    plan, directory = spec.plan, out / spec.directory_name
    example, task = loaded.splits["train"].example, inputs.task
    trainer = Trainer(
        task,
        inputs.net,
        plan.fit,
        plan.stages,
        seed=spec.seed,
        groups=plan.method.needs_groups,
        directory=directory if engine.first else None,
        cache=stages if engine.first else None,
        engine=engine,
        progress=progress,
        on_epoch=on_epoch,
    )
    for note in task.notes:
        trainer.warn(note)
    net = plan.method.train(trainer)
    if task.preprocessing is not None and engine.first:
        task.preprocessing.save(directory)
    record = RunRecord(
        task=spec.task,
        method=spec.method,
        seed=spec.seed,
        settings=spec.settings,
        preset=spec.preset,
        plan=plan.as_json(),
        key=spec.key,
        fingerprint=loaded.fingerprint,
        groups=list(task.groups),
        classes=list(task.classes),
        input_shape=list(example.shape),
        input_dtype=str(example.dtype).removeprefix("torch."),
        body=inputs.body,
        net=plan.net.title if isinstance(plan.net, Backbone) else plan.net.name,
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
            **({} if engine.processes == 1 else {"devices": f"{engine.processes} × {engine.kind}"}),
        },
    )
    if engine.first:
        write_epochs(directory, epoch_rows(trainer))
        write_training(directory, loaded.splits["train"], files=image_files(loaded))
        write_closer(directory, trainer, net, x=loaded.splits["train"].x)
        record.save(directory)
        for left in ("checkpoint.safetensors", FAILED):
            (directory / left).unlink(missing_ok=True)
    return engine.from_first(record)


def _check_same(record: RunRecord, spec: RunSpec, fingerprint: str) -> None:
    if record.key != spec.key:
        raise UserError(
            f"{record.directory} must hold the run {spec.key}, got the record of {record.key}; delete or move it."
        )
    if record.fingerprint != fingerprint:
        raise UserError(
            f"{record.directory} was run on other data than {spec.task} gives now; delete or move it to run again on these."
        )


def load_net(record: RunRecord, *, select: str | None = None, net_name: str | None = None) -> Net:
    """The trained net of a finished run, in evaluation mode, at the epoch that the rule ``select`` chooses on validation.

    A net whose folder has moved is found by ``net_name`` (``hf:FOLDER``); the files must be the same.
    """
    net = _built(record, net_name)
    tensors, _ = read_tensors(weights_path(record.directory, record.best_epoch(select)), kind="weights")
    if record.plan["net"].get("freeze"):
        net.head.load_state_dict({name.removeprefix("head."): tensor for name, tensor in tensors.items()})
    else:
        net.load_state_dict(tensors)
    return net.eval()


def _built(record: RunRecord, net_name: str | None) -> Net:
    """The net of ``record`` before training; the files it is made of must be what they were."""
    options = dict(record.plan["net"])
    name, content = options.pop("name"), options.pop("content", "")
    name = net_name or record.net or name
    implied = net_kind(name)[1]
    if "net.weights" in record.settings:
        options["weights"] = record.settings["net.weights"]
    settings = net_settings(name, **{key: v for key, v in options.items() if key not in implied})
    if settings.content != content:
        raise UserError(f"The files of the net {name} are not what they were when {record.directory} was trained.")
    if settings.model_dump().get("freeze"):
        settings = settings.model_copy(update={"dropout": 0.0})  # nothing is dropped in evaluation
    example = torch.zeros(record.input_shape, dtype=getattr(torch, record.input_dtype))
    with torch_stream(record.seed, "features", "init"):  # where a frozen body is random, it is the one of training
        net = settings.build(example, len(record.classes))
    if record.body and record.body != state_hash(net.body):
        raise UserError(f"The body of the net {name} is not what it was when {record.directory} was trained.")
    return net
