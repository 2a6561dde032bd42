"""SpuCoMNIST: MNIST's digits in five classes on a coloured background that gives the class away (Joshi et al. 2023).

The classes are pairs of digits: 0-1, 2-3, 4-5, 6-7, 8-9. In training the background of ``strength`` of each class has the class's
own colour and the rest shares the four other colours evenly. In validation and test every class has all five colours evenly, so
that there are 25 groups class × colour. ``difficulty`` says how easily the colour is learned: its magnitude is the part of the
image that is coloured (all of it, a corner of 4×4 or of 2×2 pixels), its variance is how far 49 coloured pixels are scattered (a
corner of 7×7; anywhere in a corner of 14×14; anywhere). Only pixels that the digit leaves empty are coloured.

Differs from the released code: validation is a random, stratified fifth of MNIST's training images instead of a fixed list of rows;
colours are computed instead of looked up in a colour map, which rounds; images are stored in whole numbers from 0 to 255; and the
random numbers are others, as everywhere in umix.
"""

import colorsys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, final

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from umix.core.streams import stream
from umix.core.subsets import stratified_split
from umix.data.benchmarks.benchmark_table import SPLITS
from umix.data.benchmarks.idx_file import Bytes, IdxError, find_idx, read_idx
from umix.data.checks.problems import FolderCheck, Problems
from umix.data.groups import Groups
from umix.data.task import CheckedSource, Split, Task
from umix.errors import Setting, UserError

Ids = NDArray[np.int64]
Difficulty = Literal[
    "magnitude_large", "magnitude_medium", "magnitude_small", "variance_low", "variance_medium", "variance_high"
]

LABELS = ("0-1", "2-3", "4-5", "6-7", "8-9")
COLORS = ("red", "lime", "green", "blue", "violet")
SIDE = 28  # pixels
#: MNIST's files, without .gz, and the dimensions of each.
FILES = {
    "train-images-idx3-ubyte": 3,
    "train-labels-idx1-ubyte": 1,
    "t10k-images-idx3-ubyte": 3,
    "t10k-labels-idx1-ubyte": 1,
}
#: Where the files lie below the folder that is given: in it, or where torchvision unpacks them.
FOLDERS = ("", "MNIST/raw", "mnist")
#: The corner of each difficulty in which pixels are coloured; all of them, or 49 drawn for each image.
_CORNERS = {
    "magnitude_large": SIDE,
    "magnitude_medium": 4,
    "magnitude_small": 2,
    "variance_low": 7,
    "variance_medium": 14,
    "variance_high": SIDE,
}
_SCATTERED = ("variance_medium", "variance_high")
_PIXELS = 49
_ERASED_BELOW = 0.25  # a noisy digit keeps the pixels where a standard normal number is above


@final
@dataclass(frozen=True)
class UnitRange:
    """From images in 0 to 255 to numbers in [0, 1]."""

    def __call__(self, x: Tensor) -> Tensor:
        return x.float() / 255


@final
class SpuCoMNIST(CheckedSource):
    """MNIST's digits, label = pair of digits, background colour as the spurious attribute (local folder)."""

    name: ClassVar[str] = "spuco_mnist"
    default_net: ClassVar[str] = "cnn"
    preset_kind: ClassVar[str] = "images"
    published: ClassVar[Mapping[str, int]] = {"train-images-idx3-ubyte": 60_000, "t10k-images-idx3-ubyte": 10_000}

    allow_subset: bool = Field(False, description="accept other counts than the published ones")
    strength: float = Field(
        0.995, ge=0, le=1, description="share of each class in training whose background has the class's own colour"
    )
    difficulty: Difficulty = Field(
        "magnitude_large", description="which pixels of the background are coloured: how easily the colour is learned"
    )
    feature_noise: float = Field(
        0.0, ge=0, le=1, description="share of the training images whose digit is mostly erased"
    )
    label_noise: float = Field(0.0, ge=0, le=1, description="share of the training images with a wrong class")
    val_share: float = Field(0.2, gt=0, lt=1, description="share of MNIST's training images in val")
    data_seed: int = Field(
        0, ge=0, lt=2**32, description="seed of the split, colours and noise, independent of the run's seed"
    )

    def load(self, root: Path | None) -> Task:
        """The task, made from MNIST's four files in ``root`` or a folder that torchvision filled."""
        folder, problems = self.find(root), Problems()
        arrays = _read(folder, problems)
        problems.raise_first(self.name, folder)
        mismatches = [] if self.allow_subset else self.mismatches(arrays)
        if mismatches:
            raise UserError(f"{mismatches[0]}; get the whole file or pass ", Setting("allow_subset", "True"), ".")
        splits = {}
        for name, (images, digits) in self._divided(arrays).items():
            rng = stream(self.data_seed, "data", f"spuco_mnist {name}")
            splits[name] = self._split(images, digits // 2, rng, train=name == "train")
        return Task(self.name, splits, LABELS)

    def check(self, root: Path | None) -> FolderCheck:
        """The counts of the task that the folder gives, and the problems of its files."""
        folder, problems = self.find(root), Problems()
        arrays = _read(folder, problems)
        if problems.entries:
            return FolderCheck(folder, [], {}, problems)
        counts = {}
        for name, (_, digits) in self._divided(arrays).items():
            rng = stream(self.data_seed, "data", f"spuco_mnist {name}")
            y, color = self._labels(digits // 2, rng, train=name == "train")
            groups = _groups(y, color)
            counts[name] = dict(zip(groups.names, groups.sizes.tolist(), strict=True))
        return FolderCheck(folder, [], counts, problems, self.mismatches(arrays), self.allow_subset)

    def find(self, root: Path | None) -> Path:
        """The folder with MNIST's files: ``root``, or the one below it where torchvision puts them."""
        places = [] if root is None else [root / name for name in FOLDERS]
        for place in places:
            if any(find_idx(place, name) for name in FILES):
                return place
        given = "no folder was given" if root is None else f"{root} holds none of them"
        raise UserError(
            f"The task {self.name} must be given the folder with MNIST's files {', '.join(FILES)} (or these with .gz), but "
            f"{given}; get them from any copy of MNIST and pass their folder as ",
            Setting("root"),
            ": umix downloads nothing.",
        )

    def mismatches(self, arrays: Mapping[str, Bytes]) -> list[str]:
        """A sentence for every file with another number of images than MNIST has."""
        return [
            f"{name} must hold {number:,} images as published, got {len(arrays[name]):,}"
            for name, number in self.published.items()
            if len(arrays[name]) != number
        ]

    def _divided(self, arrays: Mapping[str, Bytes]) -> dict[str, tuple[Bytes, Ids]]:
        """Images and digits of each split."""
        images, digits, test_images, test_digits = (arrays[name] for name in FILES)
        rng = stream(self.data_seed, "data", "spuco_mnist split")
        val, train = stratified_split(digits.astype(np.int64), share=self.val_share, rng=rng)
        known = {"train": (images[train], digits[train]), "val": (images[val], digits[val])}
        known["test"] = (test_images, test_digits)
        return {name: (known[name][0], known[name][1].astype(np.int64)) for name in SPLITS}

    def _labels(self, y: Ids, rng: np.random.Generator, *, train: bool) -> tuple[Ids, Ids]:
        """Class and colour of every image; in training the colour mostly agrees, and noise changes some classes."""
        color = np.empty_like(y)
        for label in range(len(LABELS)):
            rows = rng.permutation(np.flatnonzero(y == label))
            own = int(self.strength * len(rows)) if train else 0
            others = [other for other in range(len(COLORS)) if not train or other != label]
            color[rows[:own]] = label
            color[rows[own:]] = np.resize(others, len(rows) - own)
        if train and self.label_noise:
            wrong = rng.permutation(len(y))[: int(self.label_noise * len(y))]
            y = y.copy()
            y[wrong] = (y[wrong] + rng.integers(1, len(LABELS), len(wrong))) % len(LABELS)
        return y, color

    def _split(self, digits: Bytes, y: Ids, rng: np.random.Generator, *, train: bool) -> Split:
        y, color = self._labels(y, rng, train=train)
        if train and self.feature_noise:
            digits = digits.copy()
            rows = rng.permutation(len(y))[: int(self.feature_noise * len(y))]
            for row in rows:
                digits[row] *= rng.standard_normal((SIDE, SIDE)) > _ERASED_BELOW
        colored = (digits == 0) & self._mask(len(y), rng)
        channels = [np.where(colored, shade[color][:, None, None], digits) for shade in _palette().T]
        x = np.stack(channels, axis=1)
        return Split(torch.from_numpy(x), torch.from_numpy(y), _groups(y, color), transform=UnitRange())

    def _mask(self, n: int, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Which pixels of ``n`` backgrounds are coloured, [n, 28, 28], or [1, 28, 28] where they are the same in all."""
        corner, scattered = _CORNERS[self.difficulty], self.difficulty in _SCATTERED
        mask = np.zeros((n if scattered else 1, SIDE, SIDE), dtype=bool)
        if not scattered:
            mask[:, :corner, :corner] = True
            return mask
        for image in mask:
            points = rng.permutation(corner * corner)[:_PIXELS]
            image[points // corner, points % corner] = True
        return mask


def _read(folder: Path, problems: Problems) -> dict[str, Bytes]:
    """The four arrays; what is wrong with the files is noted in ``problems``."""
    arrays, missing, broken = {}, [], []
    for name, dimensions in FILES.items():
        path = find_idx(folder, name)
        if path is None:
            missing.append(name)
            continue
        try:
            arrays[name] = read_idx(path, dimensions)
        except IdxError as error:
            broken.append(f"{path.name} ({error})")
    problems.add("MNIST's four files must be in the folder", missing)
    problems.add("MNIST's files must be whole idx files", broken)
    if not problems.entries:
        problems.add("MNIST's images and labels must fit together", list(_misfits(arrays)))
    return arrays


def _misfits(arrays: Mapping[str, Bytes]) -> list[str]:
    found = []
    for part in ("train", "t10k"):
        images, digits = arrays[f"{part}-images-idx3-ubyte"], arrays[f"{part}-labels-idx1-ubyte"]
        if images.shape[1:] != (SIDE, SIDE):
            found.append(f"{part} (images of {images.shape[1]}×{images.shape[2]} pixels instead of {SIDE}×{SIDE})")
        if len(images) != len(digits):
            found.append(f"{part} ({len(images):,} images, {len(digits):,} labels)")
        if len(digits) and digits.max() > 9:
            found.append(f"{part} (a label is {digits.max()}, digits are 0 to 9)")
    return found


def _palette() -> Bytes:
    """The colours, [5, 3]: evenly spaced hues."""
    hues = [colorsys.hsv_to_rgb(number / len(COLORS), 1, 1) for number in range(len(COLORS))]
    return np.round(255 * np.array(hues)).astype(np.uint8)


def _groups(y: Ids, color: Ids) -> Groups:
    return Groups.cells(
        torch.from_numpy(y),
        torch.from_numpy(color),
        labels=LABELS,
        attributes=COLORS,
        columns=("digits", "color"),
        values=[(color,) for color in COLORS],
    )
