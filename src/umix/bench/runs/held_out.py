"""Predictions for the validation and test examples of a run, and confusion counts: what metrics beyond accuracy are made of."""

import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from umix.bench.runs.training_rows import group_columns, image_files
from umix.core.decisions import decide
from umix.data.task import Split, Task
from umix.files import write_tensors, write_whole
from umix.nets.net import Net
from umix.run_folder import CONFUSION
from umix.training.evaluate import split_logits
from umix.training.history import WATCHED
from umix.training.trainer import Trainer

if TYPE_CHECKING:
    import polars

_MOST_CLASSES = 20  # of which every probability is kept; of more only that of the prediction


def held_out_logits(trainer: Trainer, net: Net, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The logits of validation and test examples; ``net`` is overwritten with ``weights``, those of the selected epoch."""
    net.companion = None  # takes no part in prediction
    net.load_state_dict(dict(weights))
    n_classes, batch_size = trainer.task.n_classes, trainer.settings.batch_size
    return {
        name: split_logits(net, split, n_classes=n_classes, batch_size=batch_size)
        for name, split in trainer.history.splits.items()
    }


def held_out_table(
    trainer: Trainer, logits: Mapping[str, Tensor], biases: np.ndarray, task: Task
) -> "polars.DataFrame":
    """A row per validation and test example: label and prediction as class numbers, probabilities, groups, where it came from.

    ``biases`` [classes] decide the prediction; the probabilities are those of the net. ``task`` is the task as it was loaded.
    """
    import polars

    files = {name: image_files(task, name) for name in WATCHED}
    overlap = any(split.groups.overlap for split in trainer.history.splits.values())
    parts = []
    for name, split in trainer.history.splits.items():
        whole = len(split) == len(task.splits[name])
        prediction = decide(logits[name], torch.from_numpy(biases)).numpy()
        p = logits[name].softmax(dim=1).numpy()
        shown = (
            replace(split, groups=task.splits[name].groups) if whole else split
        )  # not the groups that were estimated
        columns = _columns(name, shown, prediction, p, files[name] if whole else None, overlap=overlap)
        parts.append(polars.DataFrame(columns))
    return polars.concat(parts, how="diagonal")


def _columns(
    name: str, split: Split, prediction: np.ndarray, p: np.ndarray, files: list[str] | None, *, overlap: bool
) -> dict[str, Any]:
    columns: dict[str, Any] = {
        "split": [name] * len(split),
        "label": split.y.cpu().numpy().astype("int32"),
        "prediction": prediction.astype("int32"),
        "confidence": p[np.arange(len(p)), prediction],
    }
    if p.shape[1] <= _MOST_CLASSES:
        columns |= {f"p {number}": p[:, number] for number in range(p.shape[1])}
    columns |= group_columns(split, overlap=overlap)
    if split.origin is not None:
        columns["row"] = split.origin.astype("int64")
    if files is not None:
        columns["file"] = files
    return columns


def write_predictions_table(path: Path, table: "polars.DataFrame") -> None:
    """Write a table of predictions to ``path``."""
    content = io.BytesIO()
    table.write_parquet(content)
    write_whole(path, content.getvalue())


def write_confusion(directory: Path, trainer: Trainer) -> None:
    """Write the confusion counts of every epoch, by argmax, into the run's folder."""
    confusion = {name: counts for name in WATCHED if (counts := trainer.history.confusion(name)) is not None}
    if confusion:
        write_tensors(directory / CONFUSION, confusion, {"kind": "confusion"})
