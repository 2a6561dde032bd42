"""Features of a frozen body, computed once and stored in one file per split; later runs train their heads on them.

They are computed as in evaluation: with the split's ``transform``, without augmentation, with the
body in evaluation mode. The name of a file contains a hash of the inputs, their transform, the net
and its weights. So runs of all methods, settings and seeds share the files, and a run whose files
exist never runs the body.
"""

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, final

import numpy as np
import torch
from torch import Tensor, nn

from umix.core.streams import torch_stream
from umix.data.inputs import Mapped
from umix.data.loader import batches
from umix.data.task import Split, Task
from umix.errors import Setting, UserError
from umix.models.backbone import Backbone, Frozen, try_parts
from umix.models.weight_files import state_hash
from umix.store import load_or_none, locked, name_part, reading, require_space, sweep, whole
from umix.training.engine import Engine
from umix.training.progress import Progress, Silent

_FORMAT = 1  # to be raised when features are computed in another way
_BATCH = 64  # examples
_NUMBERS = (
    2**20
)  # input numbers per batch on a CPU: the system would map the memory of larger activations anew each time
_IN_MEMORY = 2**30  # up to so many bytes of features are read into memory; larger files are memory-mapped


@final
@dataclass(frozen=True, eq=False)
class Featured:
    """A task whose inputs are features.

    ``body`` is a hash of the body's weights if the net's options do not determine them.
    """

    task: Task
    body: str


def featured(
    task: Task, net: Backbone, directory: Path, *, seed: int, engine: Engine, progress: Progress | None = None
) -> Featured:
    """``task`` with the features of the frozen body of ``net`` as inputs, stored in ``directory``.

    Existing files are used; missing and damaged ones are computed, after a note about their size.
    ``seed`` matters only for a body with random weights.
    """
    progress, example = progress or Silent(), task.splits["train"].example
    files = _located(task, net, directory, seed)
    inputs = files.opened(task, warn=progress.note)
    if len(inputs) < len(task.splits):
        with locked(directory):
            inputs = files.opened(task)  # another process may have computed them meanwhile
            absent = {name: split for name, split in task.splits.items() if name not in inputs}
            if absent:
                body, head = files.parts or frozen_parts(net, example, task.n_classes, seed)
                width = try_parts(body, head, example, task.n_classes, net.title)
                _compute(absent, files.paths, body, width, net.title, engine, progress)
                inputs = files.opened(task)
    return files.featured(task, inputs)


@final
@dataclass(frozen=True, eq=False)
class _Files:
    """The files of a task's features by split.

    ``body`` is as in ``Featured``; ``parts`` are those of the net if they were built to hash them.
    """

    keys: dict[str, str]
    paths: dict[str, Path]
    body: str
    parts: tuple[Frozen, nn.Linear | None] | None

    def opened(self, task: Task, *, warn: Callable[[str], None] = lambda message: None) -> dict[str, Tensor | Mapped]:
        """The features of the splits whose files are there; ``warn`` is told which are damaged."""
        small = sum(path.stat().st_size for path in self.paths.values() if path.exists()) <= _IN_MEMORY
        inputs = {}
        for name in task.splits:
            read = partial(_open, self.paths[name], self.keys[name], small)
            features = load_or_none(self.paths[name], read, again="they are computed again", warn=warn)
            if features is not None:
                inputs[name] = features
        return inputs

    def featured(self, task: Task, inputs: Mapping[str, Tensor | Mapped]) -> Featured:
        """``task`` with these features as inputs."""
        splits = {
            name: replace(split, x=inputs[name], transform=None, augment=None) for name, split in task.splits.items()
        }
        return Featured(replace(task, splits=splits), self.body)


def _located(task: Task, net: Backbone, directory: Path, seed: int) -> _Files:
    """Where in ``directory`` the features of ``task`` are, whether they are computed yet or not."""
    parts = None
    if not net.names_its_weights:
        parts = frozen_parts(net, task.splits["train"].example, task.n_classes, seed)
    body = "" if parts is None else state_hash(parts[0])
    keys = {name: _key(split, net, body) for name, split in task.splits.items()}
    paths = {name: directory / f"features-{name_part(task.name)}-{name}-{key}.npy" for name, key in keys.items()}
    return _Files(keys, paths, body, parts)


def frozen_parts(net: Backbone, example: Tensor, n_classes: int, seed: int) -> tuple[Frozen, nn.Linear | None]:
    """The frozen body of ``net``, and the net's own head if it has one; random weights come from ``seed``."""
    with torch_stream(seed, "features", "init"):
        body, head = net.parts(example, n_classes)
    if head is not None and not isinstance(head, nn.Linear):
        raise UserError(f"freeze must be used with a linear head, but {net.title} has a {type(head).__name__}.")
    return Frozen(body), head


def _key(split: Split, net: Backbone, body: str) -> str:
    options = {name: value for name, value in net.as_json().items() if name not in ("freeze", "dropout")}
    content = {"format": _FORMAT, "net": options, "body": body, "inputs": replace(split, augment=None).fingerprint}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]


def _compute(
    splits: dict[str, Split],
    paths: dict[str, Path],
    body: Frozen,
    width: int,
    title: str,
    engine: Engine,
    progress: Progress,
) -> None:
    n = sum(len(split) for split in splits.values())
    size, directory = 4 * n * width, next(iter(paths.values())).parent
    require_space(
        directory, size, what="The features need", fix=UserError("choose another folder with ", Setting("cache"))
    )
    progress.note(
        f"Computing {width:,} features of {n:,} examples once with {title} into {directory} ({size / 1e6:,.1f} MB)."
    )
    sweep(directory)
    body.to(engine.device)
    progress.start("features", total=n, done=0)
    try:
        for name, split in splits.items():
            with whole(paths[name]) as file:
                _write(file, split.to(engine.device), body, width, progress.advance)
    finally:
        progress.finish()


@torch.inference_mode()
def _write(file: IO[bytes], split: Split, body: Frozen, width: int, advance: Callable[[int], None]) -> None:
    """Write the features of all examples as one array [n, width], in the order of the split."""
    header = {"descr": "<f4", "fortran_order": False, "shape": (len(split), width)}
    np.lib.format.write_array_header_1_0(file, header)
    begin, size = file.tell(), _BATCH
    if len(split) and split.y.device.type == "cpu":
        size = min(_BATCH, max(4, _NUMBERS // split.example.numel()))
    for batch in batches(split, _order(split.x), batch_size=size):
        z = body(batch.x).float().cpu().numpy().astype("<f4", copy=False)
        if not np.isfinite(z).all():
            raise UserError("The features must be finite, but some are not; the net's weights do not fit these inputs.")
        for row, values in zip(batch.host_rows().tolist(), z, strict=True):
            file.seek(begin + 4 * width * row)
            file.write(values.tobytes())
        advance(len(z))


def _order(x: object) -> Tensor:
    """The order in which to compute features: texts by length, because a batch is as long as its longest text."""
    if not isinstance(x, Tensor) or x.is_floating_point() or x.dim() != 2:
        return torch.arange(len(x))  # type: ignore[arg-type]
    differs = (x != x[:, -1:]).cpu()  # if a text is padded, its last token is padding
    length = (differs * torch.arange(1, x.shape[1] + 1)).amax(dim=1)
    return length.argsort(stable=True)


def _open(path: Path, key: str, small: bool) -> Tensor | Mapped:
    """The features at ``path``, in memory if they are ``small``."""
    with reading(path, "features", fix="delete it"):
        values = np.load(path, mmap_mode="r")
    if small:
        values = np.array(values)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not writable")  # batches are copies, so nothing writes to the file
        z = torch.from_numpy(values)
    return z if small else Mapped(z, key)
