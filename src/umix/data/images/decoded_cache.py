"""The cache of decoded images: one memory-mapped file for each split, from which batches are sliced."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from umix.data.images.image_files import Images
from umix.data.inputs import Mapped
from umix.data.task import Task
from umix.errors import Setting, UserError
from umix.store import load_or_none, locked, name_part, reading, require_space, sweep, whole

_AT_ONCE = 128  # images in memory while decoding


def cached(
    task: Task,
    directory: Path,
    *,
    announce: Callable[[str], None] = lambda message: None,
    advance: Callable[[int], None] = lambda images: None,
) -> Task:
    """``task`` with its images decoded into files in ``directory``; a task without images is returned unchanged.

    Files that are there already are used; ``announce`` is told which are damaged, and the size of the others before they are
    written, ``advance`` how many images were decoded. A cached task has the fingerprint of the streamed one: the numbers are the
    same.
    """
    images = {name: split.x for name, split in task.splits.items() if isinstance(split.x, Images)}
    paths = {name: directory / f"{name_part(task.name)}-{name}-{x.stamp}.npy" for name, x in images.items()}

    def usable(name: str) -> bool:
        read = partial(_open, paths[name], images[name])
        return load_or_none(paths[name], read, again="the images are decoded again", warn=announce) is not None

    absent = {name: x for name, x in images.items() if not usable(name)}
    if absent:
        size = sum(len(x) * int(np.prod(x.shape)) for x in absent.values())
        fix = UserError(
            "choose another folder with ",
            Setting("cache"),
            " or decode images in every epoch with ",
            Setting("stream", "True"),
        )
        require_space(directory, size, what="The image cache needs", fix=fix)
        n = sum(len(x) for x in absent.values())
        announce(f"Decoding {n:,} images once into {directory} ({size / 1e6:,.1f} MB).")
        with locked(directory):  # of several processes one decodes a split, and the others wait for its file
            sweep(directory)
            for name, x in absent.items():
                if not usable(name):
                    _write(paths[name], x, advance)
    mapped = {name: replace(task.splits[name], x=_open(paths[name], x)) for name, x in images.items()}
    return replace(task, splits={**task.splits, **mapped})


def _write(path: Path, images: Images, advance: Callable[[int], None]) -> None:
    """Write all images as one array [n, 3, height, width], atomically."""
    header = {"descr": "|u1", "fortran_order": False, "shape": (len(images), *images.shape)}
    with whole(path) as file:
        np.lib.format.write_array_header_1_0(file, header)
        for begin in range(0, len(images), _AT_ONCE):
            rows = torch.arange(begin, min(begin + _AT_ONCE, len(images)))
            file.write(images.take(rows).numpy().data)
            advance(len(rows))


def _open(path: Path, images: Images) -> Mapped:
    expected = (len(images), *images.shape)
    with reading(path, "image cache", fix="delete it"):
        values = np.load(path, mmap_mode="r")
        if values.shape != expected or values.dtype != np.uint8:
            raise ValueError(f"uint8 {list(expected)} are expected, got {values.dtype} {list(values.shape)}")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not writable")  # the array is never written to: batches are copies
        return Mapped(torch.from_numpy(values), images.fingerprint)
