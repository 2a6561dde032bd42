"""Executing a spec: a finished run is loaded, an unfinished one goes on, a new one is trained."""

import contextlib
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from umix.bench.runs.learners import (
    as_run_of,
    better_counts,
    choose_learner,
    learner_paths,
    learner_specs,
    move_up,
    take_over,
)
from umix.bench.runs.lock import run_lock
from umix.bench.runs.paths import RunPaths
from umix.bench.runs.record import RunRecord, load_run
from umix.bench.runs.train_run import TrainedRun, remove_unfinished, save_run, train_run
from umix.bench.runs.training_inputs import for_net, training_inputs
from umix.bench.spec.run_spec import RunSpec
from umix.core.epoch_counts import Counts
from umix.core.evaluation import UseGroups
from umix.data.task import Task
from umix.errors import Setting, UserError
from umix.methods.method import Method
from umix.models.model import AutoNet
from umix.run_folder import RECORD
from umix.training.engine import Engine
from umix.training.progress import Progress, Silent


def execute(
    spec: RunSpec,
    *,
    out: str | Path | None = None,
    paths: RunPaths | None = None,
    task: Task | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
    on_epoch: Callable[[int, Counts], None] | None = None,
    wait: bool = True,
) -> RunRecord:
    """Run ``spec`` and return its record, which is also written to a folder of its own.

    A finished run is not repeated. A killed run goes on from its last checkpoint and ends with the same numbers.

    Args:
        spec: what to run.
        out: the folder of runs, short for ``paths=RunPaths(out=...)``; default ``runs``.
        paths: all folders: of runs, of data, of caches; and how often checkpoints are written.
        task: what ``spec`` names, if the caller has loaded it already.
        engine: the devices. If several processes share it, all of them call this function.
        progress: is told about every stage.
        on_epoch: ``on_epoch(epoch, val)`` is given the validation counts after every epoch of the final fit. If it raises, the run
            stops there and can be resumed; epochs that are repeated then are given again. If the learner is left open, it is given
            the counts of the best learner so far after every epoch of the one that is trained last, a net if there is one.
        wait: if another process is executing the run, wait for it and return its record; False raises Busy instead.

    """
    if out is not None and paths is not None:
        raise UserError("execute must be given out or paths, which holds an out of its own, got both.")
    paths = paths or RunPaths(Path("runs" if out is None else out))
    progress, engine = progress or Silent(), engine or Engine()
    record = engine.from_first(finished(spec, paths.out) if engine.first and is_finished(spec, paths.out) else None)
    if record is not None:
        return record
    # The name depends on the files of the net: a net that is not there is refused before the data are loaded.
    name = spec.directory_name
    if isinstance(spec.plan.net, AutoNet):
        fingerprint, train = None, partial(_train_learners, spec, task, paths)
    else:
        task = task or paths.load(spec)
        fingerprint, train = task.fingerprint, partial(_train, spec, task, paths, paths.run_folder(spec))
        if (record := _finished_for(engine, spec, paths.out, fingerprint)) is not None:
            return record
        _check_task(spec, task)
    lock = run_lock(paths.out, name, wait=wait, note=progress.note)
    with lock if engine.first else contextlib.nullcontext():
        record = _finished_for(engine, spec, paths.out, fingerprint)  # another process may have finished it meanwhile
        return record or train(engine=engine, progress=progress, on_epoch=on_epoch)


def _check_task(spec: RunSpec, task: Task) -> None:
    """Raise where ``task`` lacks what the method or the model of ``spec`` needs."""
    require_groups(spec.plan.method, task, spec.plan.evaluation.use_groups)
    spec.plan.model.check_example(task.splits["train"].example, data=task.name)


def _train_learners(
    spec: RunSpec,
    task: Task | None,
    paths: RunPaths,
    *,
    engine: Engine,
    progress: Progress,
    on_epoch: Callable[[int, Counts], None] | None,
) -> RunRecord:
    """Train every learner in a folder of its own, and make the one that validation chooses the run.

    A learner that was finished before the process was killed is not trained again, one that was chosen is only moved.
    """
    specs = [one for one in learner_specs(spec) if engine.processes == 1 or "gradients" in one.plan.net.offers]
    below, directory = learner_paths(paths, spec), paths.run_folder(spec)
    for folder in (below.run_folder(one) for one in specs) if engine.first else ():
        if (folder / RECORD).exists() and load_run(folder).key == spec.key:
            move_up(folder, directory)
    if (record := _finished_for(engine, spec, paths.out, None)) is not None:
        return record
    records: dict[str, RunRecord] = {}

    def watch(epoch: int, val: Counts) -> None:
        if on_epoch is not None and len(records) == len(specs) - 1:
            on_epoch(epoch, better_counts(list(records.values()), val))

    # Estimators are fitted in one go: they come first, so that a net can be stopped that does not come near them.
    for one in sorted(specs, key=lambda one: "gradients" in one.plan.net.offers):
        of_one = task if task is not None and one.plan.source == spec.plan.source else paths.load_cached(one)
        _check_task(one, of_one)
        records[one.key] = _finished_for(engine, one, below.out, of_one.fingerprint) or _train(
            one, of_one, below, below.run_folder(one), engine=engine, progress=progress, on_epoch=watch
        )
    choice = choose_learner([records[one.key] for one in specs])
    if engine.first:
        take_over(choice, spec, directory)
    return engine.from_first(load_run(directory) if engine.first else None) or load_run(directory)


def train_in_memory(
    spec: RunSpec, paths: RunPaths, *, cache: Path | None = None, progress: Progress | None = None
) -> tuple[TrainedRun, Task]:
    """The trained run of ``spec`` and its task; of several learners that of the better one."""
    runs = []
    for one in learner_specs(spec):
        task = paths.load_cached(one)
        runs.append(execute_in_memory(one, task, cache=cache, progress=progress))
    if not isinstance(spec.plan.net, AutoNet):
        return runs[0], runs[0].task
    choice = choose_learner([trained.record for trained in runs])
    trained = next(run for run in runs if run.record is choice.chosen)
    return replace(trained, record=as_run_of(choice, spec)), trained.task


def execute_in_memory(
    spec: RunSpec,
    task: Task,
    *,
    cache: Path | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> TrainedRun:
    """Train ``spec`` on ``task`` and return the result; nothing is written but features of a frozen net, into ``cache``."""
    _check_task(spec, task)
    engine, progress = engine or Engine(), progress or Silent()
    with contextlib.ExitStack() as stack:
        folder = cache or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="umix-")))
        streamed = cache is None  # decoding into a folder that is deleted would cost more than it saves
        ready = for_net(task, spec.plan.model)
        inputs = training_inputs(
            ready, spec.plan, folder, seed=spec.seed, stream=streamed, engine=engine, progress=progress
        )
        return train_run(
            spec,
            ready,
            inputs,
            fingerprint=task.fingerprint,
            directory=None,
            stages=None,
            engine=engine,
            progress=progress,
        )


def require_groups(method: Method, task: Task, use_groups: UseGroups = "train") -> None:
    """Raise if ``task`` does not have the disjoint groups that ``method`` trains with, or if they may not be used so."""
    needed = "val" if method.needs_val_groups else "train"
    if (method.needs_groups and use_groups != "train") or (method.needs_val_groups and use_groups == "test"):
        split = "validation" if method.needs_val_groups else "training"
        few = (
            use_groups == "val" and "groups_from" in type(method).model_fields
        )  # they can be estimated from validation
        raise UserError(
            f"{method.name} trains with {split} groups, but ",
            Setting("use_groups", use_groups),
            " does not allow it; set ",
            Setting("use_groups", needed),
            f" or {method.name}.groups_from=few," if few else "",
            " or take a method that needs none (umix methods).",
        )
    if not task.groups and (method.needs_groups or method.needs_val_groups):
        split = "validation" if method.needs_val_groups else "training"
        raise UserError(
            f"{method.name} needs {split} groups, but the task has none; name their columns with ",
            Setting("groups"),
            ", or take a method that needs none (umix methods).",
        )
    if method.needs_groups:
        task.splits["train"].group  # noqa: B018 — raises if there are none
    if method.needs_val_groups:
        task.splits["val"].group  # noqa: B018 — likewise
    if method.needs_some_groups:
        _require_some_groups(method, task, use_groups)


def _require_some_groups(method: Method, task: Task, use_groups: UseGroups) -> None:
    """Raise if no group that ``method`` may use is known."""
    name = f"{method.name} with groups_from=few" if "groups_from" in type(method).model_fields else method.name
    if use_groups == "test":
        raise UserError(
            f"{name} trains with the known groups of validation or training, but ",
            Setting("use_groups", use_groups),
            " does not allow it; set ",
            Setting("use_groups", "val"),
            " or take a method that needs none (umix methods).",
        )
    allowed = ("train", "val") if use_groups == "train" else ("val",)
    if not task.groups or not any((task.splits[name].some_groups >= 0).any() for name in allowed):
        where = "validation or training" if use_groups == "train" else "validation"
        raise UserError(
            f"{name} needs rows of {where} whose groups are known, but there are none; name their columns with ",
            Setting("groups"),
            ", or take a method that needs none (umix methods).",
        )


def is_finished(spec: RunSpec, out: Path) -> bool:
    """Whether ``spec`` has a record below ``out``, as far as that can be known without reading a row of its data.

    It can where the content of its files is part of its key.
    """
    return spec.plan.source.content is not None and (out / spec.directory_name / RECORD).exists()


def finished(spec: RunSpec, out: Path, *, fingerprint: str | None = None) -> RunRecord | None:
    """The record of ``spec`` below ``out`` if it is finished; a record of data with another ``fingerprint`` is refused.

    Where the content of the files is part of the spec's key, nothing needs to be compared.
    """
    directory = out / spec.directory_name
    if not (directory / RECORD).exists():
        return None
    record = load_run(directory)
    if record.key != spec.key:
        raise UserError(
            f"{record.directory} must hold the run {spec.key}, got the record of {record.key}; delete or move it."
        )
    if fingerprint is not None and record.fingerprint != fingerprint:
        raise UserError(
            f"{record.directory} was run on other data than {spec.task} gives now; delete or move it to run again on these."
        )
    remove_unfinished(directory)
    return record


def _finished_for(engine: Engine, spec: RunSpec, out: Path, fingerprint: str | None) -> RunRecord | None:
    """What the first process of ``engine`` finds, in all of its processes."""
    return engine.from_first(finished(spec, out, fingerprint=fingerprint) if engine.first else None)


def _train(
    spec: RunSpec,
    task: Task,
    paths: RunPaths,
    directory: Path,
    *,
    engine: Engine,
    progress: Progress,
    on_epoch: Callable[[int, Counts], None] | None,
) -> RunRecord:
    ready = for_net(task, spec.plan.model)
    inputs = training_inputs(
        ready,
        spec.plan,
        paths.cache_folder,
        seed=spec.seed,
        stream=paths.stream,
        engine=engine,
        progress=progress,
    )
    trained = train_run(
        spec,
        ready,
        inputs,
        fingerprint=task.fingerprint,
        directory=directory,
        stages=paths.stages_folder,
        engine=engine,
        progress=progress,
        on_epoch=on_epoch,
        pace=paths.pace,
    )
    if engine.first:
        save_run(trained, directory)
    return engine.from_first(trained.record)
