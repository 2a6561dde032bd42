"""From batches of stored images, uint8 [batch, 3, height, width], to inputs of nets, computed for the whole batch on its device.

Evaluation: the central square, resized, normalised by ImageNet's mean and deviation. Training: a random box of the image (its
share of the area uniform in ``scale``, the logarithm of its sides' ratio uniform in ``ratio``), resized to a square by bilinear
interpolation and mirrored half of the time. Boxes are drawn as the usual random resized crop draws them: whole pixels, ten tries,
else the largest central box with a legal ratio.
"""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from umix.data.batch_memory import empty_batch
from umix.data.batch_plan import BatchPlan, PlannedAugment, PlannedTransform
from umix.data.images.box_resampling import BoxResampling, Floats

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, for values in [0, 1]
_TRIES = 10
_CHUNK = 320_000  # numbers that each CPU thread resizes at once: few enough for its cache
_LARGE = 2**14  # pixels of an image that is resized by itself on a CPU; smaller ones cost less together
_TOGETHER = 4  # large images that a thread takes at once: a call for each would cost a tenth more

_Sides = tuple[Floats, Floats]  # starts and sides of boxes, [n] each


def _moments(device: torch.device) -> tuple[Tensor, Tensor]:
    """ImageNet's mean, and one over its deviation, for values in [0, 255], [3, 1, 1] each."""
    mean = torch.tensor([255 * value for value in MEAN], device=device).view(3, 1, 1)
    return mean, torch.tensor([1 / (255 * value) for value in STD], device=device).view(3, 1, 1)


def _at_once(numbers: int) -> int:
    """How many images of so many ``numbers`` a thread changes at once."""
    return max(1, _CHUNK // max(1, numbers))


def _changed(x: Tensor, plan: BatchPlan) -> Tensor:
    """The inputs that ``plan`` makes of the whole batch ``x``, on its device."""
    out = empty_batch(plan.shape, x.device)
    step = torch.get_num_threads() * plan.at_once if x.device.type == "cpu" else max(1, len(x))
    for begin in range(0, len(x), step):
        rows = slice(begin, begin + step)
        plan.write(x[rows], rows, out[rows])
    return out


@final
@dataclass(frozen=True)
class CenterSquare(PlannedTransform):
    """The central ``crop``×``crop`` pixels, resized to ``size``×``size`` where that differs, normalised."""

    crop: int
    size: int

    def __call__(self, x: Tensor) -> Tensor:
        """Images [batch, 3, height, width] uint8 as float32 [batch, 3, size, size]."""
        return _changed(x, _Squares(self, x.shape[0], x.device))

    def plan(self, shape: tuple[int, ...]) -> BatchPlan:
        return _Squares(self, shape[0], torch.device("cpu"))


@final
class _Squares(BatchPlan):
    """The central squares of ``n`` images."""

    def __init__(self, square: CenterSquare, n: int, device: torch.device) -> None:
        self.shape, self.at_once = (n, 3, square.size, square.size), _at_once(3 * square.crop * square.crop)
        self._square, self._moments = square, _moments(device)

    def write(self, x: Tensor, rows: slice, out: Tensor) -> None:
        crop, size = self._square.crop, self._square.size
        top, left = round((x.shape[2] - crop) / 2), round((x.shape[3] - crop) / 2)
        part = x[:, :, top : top + crop, left : left + crop].float()
        if crop != size:
            part = functional.interpolate(part, (size, size), mode="bilinear", antialias=True)
        mean, scale = self._moments
        torch.mul(part.sub_(mean), scale, out=out)


@final
@dataclass(frozen=True)
class RandomBox(PlannedAugment):
    """A random box of each image, resized to ``size``×``size``, mirrored with probability ``mirror``, normalised."""

    size: int
    scale: tuple[float, float] = (0.7, 1.0)
    ratio: tuple[float, float] = (0.75, 4 / 3)
    mirror: float = 0.5

    def __call__(self, x: Tensor, rng: np.random.Generator) -> Tensor:
        """Images [batch, 3, height, width] uint8 as float32 [batch, 3, size, size]; what is drawn depends on ``rng`` only."""
        return _changed(x, self._boxes(tuple(x.shape), rng, x.device))

    def plan(self, shape: tuple[int, ...], rng: np.random.Generator) -> BatchPlan:
        return self._boxes(shape, rng, torch.device("cpu"))

    def _boxes(self, shape: tuple[int, ...], rng: np.random.Generator, device: torch.device) -> BatchPlan:
        n, _, height, width = shape
        top, left, h, w = random_boxes(n, height, width, scale=self.scale, ratio=self.ratio, rng=rng)
        mirrored = rng.random(n) < self.mirror
        down, across = (top, h), (np.where(mirrored, left + w, left), np.where(mirrored, -w, w))
        large = device.type == "cpu" and height * width >= _LARGE
        return (_LargeBoxes if large else _SmallBoxes)(down, across, height, width, self.size, device)


@final
class _SmallBoxes(BatchPlan):
    """Boxes that are cut from many images at once."""

    def __init__(self, down: _Sides, across: _Sides, height: int, width: int, size: int, device: torch.device) -> None:
        self.shape, self.at_once = (len(down[0]), 3, size, size), _at_once(3 * height * width)
        self._across, self._down = _positions(*across, width, size), _positions(*down, height, size)
        self._size, self._moments = size, _moments(device)

    def write(self, x: Tensor, rows: slice, out: Tensor) -> None:
        part = x.float()
        places = part.new_empty(len(part), 2, self._size, self._size)  # two planes are written faster than pairs
        places[:, 0] = torch.from_numpy(self._across[rows, None, :]).to(x.device, non_blocking=True)
        places[:, 1] = torch.from_numpy(self._down[rows, :, None]).to(x.device, non_blocking=True)
        grid = places.permute(0, 2, 3, 1)
        boxes = functional.grid_sample(part, grid, padding_mode="border", align_corners=False)
        mean, scale = self._moments
        torch.mul(boxes.sub_(mean), scale, out=out)


@final
class _LargeBoxes(BatchPlan):
    """Boxes that are cut image by image."""

    def __init__(self, down: _Sides, across: _Sides, height: int, width: int, size: int, device: torch.device) -> None:
        self.shape, self.at_once = (len(down[0]), 3, size, size), _TOGETHER
        mean, scale = _moments(device)
        self._boxes = BoxResampling(down, across, height=height, width=width, size=size, mean=mean, scale=scale)

    def write(self, x: Tensor, rows: slice, out: Tensor) -> None:
        for number, (image, box) in enumerate(zip(x, out, strict=True), start=rows.start):
            self._boxes.write(image, number, box)


def _positions(start: Floats, side: Floats, whole: int, size: int) -> NDArray[np.float32]:
    """Where the pixels of a side resized to ``size`` lie, [n, size], in [-1, 1] of the ``whole``; negative sides run backwards."""
    pixels = start[:, None] + (np.arange(size) + 0.5) * side[:, None] / size
    return (2 * pixels / whole - 1).astype(np.float32)


def random_boxes(
    n: int,
    height: int,
    width: int,
    *,
    scale: tuple[float, float],
    ratio: tuple[float, float],
    rng: np.random.Generator,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Top, left, height and width [n] of random boxes inside an image, in whole pixels."""
    area = height * width * rng.uniform(*scale, size=(_TRIES, n))
    aspect = np.exp(rng.uniform(math.log(ratio[0]), math.log(ratio[1]), size=(_TRIES, n)))
    w, h = np.rint(np.sqrt(area * aspect)), np.rint(np.sqrt(area / aspect))
    fits = (w >= 1) & (w <= width) & (h >= 1) & (h <= height)
    first, column, found = fits.argmax(axis=0), np.arange(n), fits.any(axis=0)
    fallback = min(max(width / height, ratio[0]), ratio[1])
    w = np.where(found, w[first, column], min(width, round(height * fallback)))
    h = np.where(found, h[first, column], min(height, round(width / fallback)))
    top = np.where(found, np.floor(rng.random(n) * (height - h + 1)), (height - h) // 2)
    left = np.where(found, np.floor(rng.random(n) * (width - w + 1)), (width - w) // 2)
    return top, left, h, w
