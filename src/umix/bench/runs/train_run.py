"""Training one run: the method is given a context, and what it leaves becomes the record and the files of the run."""

import platform
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import final

import numpy as np
import torch

from umix.bench.runs.epoch_table import epoch_rows, write_epochs
from umix.bench.runs.example_files import (
    held_out_logits,
    held_out_table,
    image_files,
    training_rows,
    write_confusion,
    write_example_features,
    write_examples,
)
from umix.bench.runs.record import RunRecord, StageRecord
from umix.bench.runs.split_counts import SplitCounts
from umix.bench.runs.training_inputs import TrainingInputs
from umix.bench.spec.run_spec import RunSpec
from umix.checkpoint_pace import USUAL, CheckpointPace
from umix.core.epoch_counts import Counts
from umix.core.evaluation import UseGroups
from umix.data.tables.preprocessing import TablePreprocessing
from umix.data.task import Task
from umix.errors import UserError
from umix.methods.method import Method
from umix.methods.parts.spread_groups import with_validation_groups
from umix.run_folder import ARGMAX_PREDICTIONS, CHECKPOINT, FAILED, PREDICTIONS, TRAINING_ROWS, weights_path
from umix.store import read_tensors, remove, write_table
from umix.training.best_weights import selected_epochs
from umix.training.context import Context
from umix.training.engine import Engine
from umix.training.history import EVAL_SPLITS
from umix.training.progress import Progress
from umix.training.train_result import Notes, TrainResult
from umix.version import __version__


@final
@dataclass(frozen=True, eq=False)
class TrainedRun:
    """A run that was trained in this process: its record, what the method returned, and the context that it was trained in.

    ``task`` is the task whose inputs the net takes.
    """

    record: RunRecord
    result: TrainResult
    context: Context
    task: Task


def train_run(
    spec: RunSpec,
    task: Task,
    inputs: TrainingInputs,
    *,
    fingerprint: str,
    directory: Path | None,
    stages: Path | None,
    engine: Engine,
    progress: Progress,
    on_epoch: Callable[[int, Counts], None] | None = None,
    pace: CheckpointPace = USUAL,
) -> TrainedRun:
    """Train ``spec`` on ``inputs``, which were made of ``task``, whose inputs the net takes.

    ``fingerprint`` is that of the data as they were loaded.
    With ``directory`` the run can be killed and goes on from its last checkpoint. Without it the weights of the best epochs
    stay in memory. ``stages`` is the folder of stages that runs share.
    """
    plan = spec.plan
    context = Context(
        inputs.task,
        inputs.net,
        plan.fit,
        plan.stages,
        seed=spec.seed,
        groups=plan.method.needs_groups,
        use_groups=plan.evaluation.use_groups,
        directory=directory if engine.first else None,
        cache=stages if engine.first else None,
        evaluation=plan.evaluation.rules,
        threshold=plan.evaluation.threshold,
        hold=directory is None,
        engine=engine,
        progress=progress,
        on_epoch=on_epoch,
        pace=pace,
    )
    context, notes = with_validation_groups(context)
    result = plan.method.train(context).after(Notes(warnings=tuple(task.notes)) + notes)
    return TrainedRun(_record(spec, task, inputs, context, result, fingerprint), result, context, task)


def save_run(trained: TrainedRun, directory: Path) -> None:
    """Write everything that a finished run leaves in its folder; the record comes last and says that the run is finished."""
    task = trained.task
    if task.preprocessing is not None:
        task.preprocessing.save(directory)
    write_epochs(directory, epoch_rows(trained.context, trained.result))
    write_table(directory / TRAINING_ROWS, training_rows(task.splits["train"], image_files(task)))
    write_examples(directory, trained.result, task.splits["train"].y)
    write_example_features(directory, trained.context, trained.result, x=task.splits["train"].x)
    record = trained.record
    if record.has(record.rule()):
        _write_predictions(trained, task, directory)
    trained.record.save(directory)
    remove_unfinished(directory)


def remove_unfinished(directory: Path) -> None:
    """Remove what only an unfinished run has; a process that was killed right after it wrote the record has left it."""
    for left in (CHECKPOINT, FAILED):
        remove(directory / left)


def _write_predictions(trained: TrainedRun, task: Task, directory: Path) -> None:
    """Write the predictions of the run's choice; where it is another than that by argmax, write those too."""
    record, result = trained.record, trained.result
    tuned, plain = record.choice(), record.choice(threshold="off")
    logits = {}
    for path, choice in ((PREDICTIONS, tuned), *(((ARGMAX_PREDICTIONS, plain),) if plain != tuned else ())):
        if choice.epoch not in logits:
            logits[choice.epoch] = held_out_logits(result, task, _kept_weights(directory, choice.epoch))
        table = held_out_table(result, logits[choice.epoch], record.biases(choice), record.calibration(choice), task)
        write_table(directory / path, table)
    write_confusion(directory, result.history)


def _kept_weights(directory: Path, epoch: int) -> dict[str, torch.Tensor]:
    """The weights of ``epoch``; where they were lost since they were written, the next execution starts the fit again."""
    try:
        return read_tensors(weights_path(directory, epoch), kind="weights")[0]
    except UserError as error:
        remove(directory / CHECKPOINT)
        raise UserError(
            f"{str(error).rpartition('; ')[0] or error}; execute the run again: its fit starts anew."
        ) from None


def group_use(method: Method, task: Task, use_groups: UseGroups = "train") -> str:
    """Which group labels ``method`` trains with: none, those of validation, or those of training."""
    if method.needs_groups:
        return "training"
    if method.needs_some_groups and use_groups == "train" and (task.splits["train"].some_groups >= 0).any():
        return "training"
    return "validation" if method.needs_val_groups or method.needs_some_groups else "none"


def _record(
    spec: RunSpec, task: Task, inputs: TrainingInputs, context: Context, result: TrainResult, fingerprint: str
) -> RunRecord:
    plan, example, engine = spec.plan, task.splits["train"].example, context.engine
    reader = task.preprocessing
    counts = {name: result.history.counts(name) for name in EVAL_SPLITS}
    record = RunRecord(
        task=spec.task,
        method=spec.method,
        seed=spec.seed,
        settings=spec.settings,
        preset=spec.preset,
        plan=plan.as_json(),
        asked=plan.asked(plan.as_json()),
        key=spec.key,
        fingerprint=fingerprint,
        rows=task.rows_fingerprint,
        groups=list(task.groups),
        group_columns=list(task.splits["test"].groups.columns),
        group_parts=[list(part) for part in task.splits["test"].groups.parts],
        group_values=[list(values) for values in task.splits["test"].groups.column_values],
        group_use=result.group_use or group_use(plan.method, task, plan.evaluation.use_groups),
        use_groups=plan.evaluation.use_groups,
        min_group=plan.evaluation.min_group,
        prior=plan.evaluation.prior,
        floor=result.history.evaluation.floor,
        class_floor=result.history.evaluation.class_floor,
        classes=list(task.classes),
        input_shape=list(example.shape),
        input_dtype=str(example.dtype).removeprefix("torch."),
        input_categories=list(task.categories),
        column_types=Counter(reader.types.values()) if isinstance(reader, TablePreprocessing) else {},
        body=inputs.body,
        net=plan.net.title,
        train_sizes=task.splits["train"].groups.sizes.tolist(),
        train_margin_sizes=task.splits["train"].groups.in_margins.sum(dim=0).tolist(),
        n_train=len(task.splits["train"]),
        train_class_sizes=list(task.splits["train"].class_sizes(task.classes).values()),
        split_counts={name: SplitCounts.of(split) for name, split in counts.items()},
        calibrations=_calibrations(result, counts["val"]) if plan.evaluation.calibrate else {},
        stages={name: StageRecord(**asdict(report)) for name, report in context.journal.reports.items()},
        warnings=list(result.warnings),
        choices=dict(result.choices),
        versions={
            "umix": __version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
            **({} if engine.processes == 1 else {"devices": f"{engine.processes} × {engine.kind}"}),
        },
    )
    record.keep_thresholds(counts)
    return record


def _calibrations(result: TrainResult, val: Counts) -> dict[int, list[float]]:
    """What calibrates the probabilities of the epochs whose weights are kept; none where validation is too small."""
    epochs = sorted({*selected_epochs(val), val.epochs - 1} & set(range(val.epochs)))
    fitted = {epoch: result.history.calibration(epoch) for epoch in epochs}
    return {epoch: [one.scale, *one.biases] for epoch, one in fitted.items() if one is not None}
