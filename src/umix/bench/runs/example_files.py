"""The files about single examples that a finished run writes.

``training.parquet`` has the training examples as reports need them. ``label`` is the number of the class. Disjoint groups have one
column ``group``; of groups that overlap each has a column of its own, ``group 0``, ``group 1``, …, that says who is in it. Where
some examples have a blank in some of the group columns only, ``column 1``, ``column 2``, … are the values of these columns. ``row``
is the row in the user's file, ``file`` the path of an image.

``predictions.parquet`` has the validation and test examples in the same way, with the prediction and the probabilities,
calibrated where the run could do so; ``confusion.safetensors`` counts what was predicted as what.

``closer.safetensors`` is a closer look at some training examples, the most uncertain ones and as many drawn at random. ``index``
says which they are, ``features`` [k, width] what the trained net makes of them, ``prediction`` [k] which class it predicts after
its last epoch and ``correct`` [k] whether that is right. Inputs that are small and not images in files are kept too, as ``x``:
nobody can look them up in a file.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from umix.core.calibration import Calibration
from umix.core.streams import stream
from umix.core.thresholds import calibrated_probabilities, predicted_classes
from umix.data.images.image_files import Images
from umix.data.inputs import Inputs
from umix.data.task import Split, Task
from umix.run_folder import CONFUSION, EXAMPLE_FEATURES, EXAMPLES
from umix.store import write_tensors
from umix.training.context import Context
from umix.training.evaluate import outputs, split_logits
from umix.training.history import EVAL_SPLITS, History
from umix.training.train_result import TrainResult

if TYPE_CHECKING:
    import polars

_MOST_CLASSES = 20  # of which every probability is kept; of more only that of the prediction
#: How many of each kind are looked at closely: a pass over them costs little, and they show any cluster worth a name.
MOST = 500
_SMALL = 4096  # numbers in an input that is kept


def image_files(task: Task, split: str = "train") -> list[str] | None:
    """The paths of the images of a split, before they are decoded; None where the task has other inputs."""
    x = task.splits[split].x
    return [str((x.folder / name).absolute()) for name in x.files] if isinstance(x, Images) else None


def group_columns(split: Split, *, overlap: bool) -> dict[str, Any]:
    """The groups of every example: where they do not ``overlap`` one column ``group``, -1 if not known; else one for each.

    Where some examples have values in some of the group columns and no group, the values of each are a column too.
    """
    import polars

    if split.groups.names and not overlap:
        columns: dict[str, Any] = {"group": split.groups.codes.cpu().numpy().astype("int32")}
        if split.groups.column_codes is not None:
            for place, values in list(enumerate(split.groups.column_values))[1:]:
                texts = [(*values, None)[code] for code in split.groups.column_codes[:, place].tolist()]
                columns[f"column {place}"] = polars.Series(texts, dtype=polars.String)
        return columns
    member = split.member.cpu().numpy()
    return {f"group {number}": member[:, number] for number in range(member.shape[1])}


def training_rows(train: Split, files: list[str] | None = None) -> "polars.DataFrame":
    """What is known of the examples ``train``, a row each."""
    import polars

    columns: dict[str, Any] = {"label": train.y.cpu().numpy().astype("int32")}
    columns |= group_columns(train, overlap=train.groups.overlap)
    if train.origin is not None:
        columns["row"] = train.origin.astype("int64")
    if files is not None:
        columns["file"] = files
    return polars.DataFrame(columns)


def held_out_logits(result: TrainResult, task: Task, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The logits of validation and test examples; the net is overwritten with ``weights``, those of the selected epoch."""
    net, history = result.net, result.history
    net.companion = None  # takes no part in prediction
    net.load_state_dict(dict(weights))
    return {
        name: split_logits(net, split, n_classes=task.n_classes, batch_size=history.batch_size)
        for name, split in history.splits.items()
    }


def held_out_table(
    result: TrainResult, logits: Mapping[str, Tensor], biases: np.ndarray, calibration: Calibration, task: Task
) -> "polars.DataFrame":
    """A row per validation and test example: label and prediction as class numbers, probabilities, groups, where it came from.

    ``biases`` [classes] decide the prediction, ``calibration`` makes the probabilities. ``task`` is the task as it was loaded.
    """
    import polars

    files = {name: image_files(task, name) for name in EVAL_SPLITS}
    overlap = any(split.groups.overlap for split in result.history.splits.values())
    parts = []
    for name, split in result.history.splits.items():
        whole = len(split) == len(task.splits[name])
        prediction = predicted_classes(logits[name], torch.from_numpy(biases)).numpy()
        p = calibrated_probabilities(logits[name], calibration).numpy()
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


def write_confusion(directory: Path, history: History) -> None:
    """Write the confusion counts of every epoch, by argmax, into the run's folder."""
    confusion = {name: counts for name in EVAL_SPLITS if (counts := history.confusion(name)) is not None}
    if confusion:
        write_tensors(directory / CONFUSION, confusion, {"kind": "confusion"})


def write_examples(directory: Path, result: TrainResult, y: Tensor) -> None:
    """Write what the method has computed for each training example, with their labels ``y`` [n], into the run's folder."""
    if result.per_example:
        write_tensors(directory / EXAMPLES, {**result.per_example, "label": y}, {"kind": "examples"})


def write_example_features(directory: Path, context: Context, result: TrainResult, x: Tensor | Inputs) -> None:
    """Write the closer look at the run's training examples, whose inputs were ``x`` before anything was made of them.

    A run that does not know their uncertainty has none.
    """
    u, net = result.per_example.get("uncertainty"), result.net
    if u is None:
        return
    index = torch.from_numpy(chosen(u.numpy(), stream(context.seed, "report", "closer")))
    train = context.splits["train"].rows(index.to(context.device))
    features = outputs(net, train, batch_size=context.settings.batch_size, features=True)
    with torch.no_grad():
        prediction = net.head(features).argmax(dim=1)
    tensors = {
        "index": index,
        "features": _half(features.flatten(1)),
        "correct": prediction == train.y,
        "prediction": prediction.int(),
    }
    if not isinstance(x, Images) and x[0].numel() <= _SMALL:
        tensors["x"] = x[index] if isinstance(x, Tensor) else x.take(index)
    contents = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
    write_tensors(directory / EXAMPLE_FEATURES, contents, {"kind": "closer"})


def _half(features: Tensor) -> Tensor:
    """The features in half precision, which clusters do not miss; what is too large for it becomes its largest number."""
    largest = torch.finfo(torch.float16).max
    return features.clamp(-largest, largest).half()


def chosen(u: np.ndarray, rng: np.random.Generator, *, most: int = MOST) -> np.ndarray:
    """The indices of the ``most`` highest ``u`` [n], ties broken at random, and of as many of the others, in order.

    >>> chosen(np.array([0.0, 0.9, 0.5, 1.0]), np.random.default_rng(0), most=2).tolist()
    [0, 1, 2, 3]
    """
    order = rng.permutation(len(u))
    order = order[np.argsort(-u[order], kind="stable")]
    return np.sort(np.concatenate([order[:most], rng.permutation(order[most:])[:most]]))
