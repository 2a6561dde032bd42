"""Predictions for the validation and test examples of a run, and confusion counts: what metrics beyond accuracy are made of."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from umix.bench.runs.training_rows import group_columns, image_files
from umix.data.task import Split, Task
from umix.files import write_tensors, write_whole
from umix.nets.net import Net
from umix.run_folder import CONFUSION, PREDICTIONS
from umix.training.evaluate import probabilities
from umix.training.history import WATCHED
from umix.training.trainer import Trainer

if TYPE_CHECKING:
    import polars

_MOST_CLASSES = 20  # of which every probability is kept; of more only that of the prediction


def held_out_table(trainer: Trainer, net: Net, weights: Mapping[str, Tensor], task: Task) -> "polars.DataFrame":
    """A row per validation and test example: label and prediction as class numbers, probabilities, groups, where it came from.

    ``weights`` are those of the selected epoch; ``net`` is overwritten with them. ``task`` is the task as it was loaded.
    """
    import polars

    net.companion = None  # takes no part in prediction
    net.load_state_dict(dict(weights))
    files = {name: image_files(task, name) for name in WATCHED}
    overlap = any(split.groups.overlap for split in trainer.history.splits.values())
    parts = []
    for name, split in trainer.history.splits.items():
        p = probabilities(net, split, batch_size=trainer.settings.batch_size).numpy()
        whole = len(split) == len(task.splits[name])
        parts.append(polars.DataFrame(_columns(name, split, p, files[name] if whole else None, overlap=overlap)))
    return polars.concat(parts, how="diagonal")


def _columns(name: str, split: Split, p: np.ndarray, files: list[str] | None, *, overlap: bool) -> dict[str, Any]:
    prediction = p.argmax(axis=1) if len(p) else np.zeros(0, dtype=np.int64)
    columns: dict[str, Any] = {
        "split": [name] * len(split),
        "label": split.y.cpu().numpy().astype("int32"),
        "prediction": prediction.astype("int32"),
        "confidence": p.max(axis=1) if len(p) else np.zeros(0, dtype=np.float32),
    }
    if p.shape[1] <= _MOST_CLASSES:
        columns |= {f"p {number}": p[:, number] for number in range(p.shape[1])}
    columns |= group_columns(split, overlap=overlap)
    if split.origin is not None:
        columns["row"] = split.origin.astype("int64")
    if files is not None:
        columns["file"] = files
    return columns


def write_held_out(directory: Path, table: "polars.DataFrame", trainer: Trainer) -> None:
    """Write the predictions and the confusion counts of every epoch into the run's folder."""
    content = io.BytesIO()
    table.write_parquet(content)
    write_whole(directory / PREDICTIONS, content.getvalue())
    confusion = {name: counts for name in WATCHED if (counts := trainer.history.confusion(name)) is not None}
    if confusion:
        write_tensors(directory / CONFUSION, confusion, {"kind": "confusion"})
