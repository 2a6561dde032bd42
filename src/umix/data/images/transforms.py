"""From batches of stored images, uint8 [batch, 3, height, width], to inputs of nets, computed for the whole batch on its device.

Evaluation: the central square, resized, normalised by ImageNet's mean and deviation. Training: a random box of the image (its
share of the area uniform in ``scale``, the logarithm of its sides' ratio uniform in ``ratio``), resized to a square by bilinear
interpolation and mirrored half of the time. Boxes are drawn as the usual random resized crop draws them: whole pixels, ten tries,
else the largest central box with a legal ratio.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from umix.data.batch_memory import empty_batch

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, for values in [0, 1]
_TRIES = 10
_CHUNK = 320_000  # numbers that each CPU thread resizes at once: few enough for its cache

Floats = NDArray[np.float64]


def _moments(device: torch.device) -> tuple[Tensor, Tensor]:
    """ImageNet's mean, and one over its deviation, for values in [0, 255], [3, 1, 1] each."""
    mean = torch.tensor([255 * value for value in MEAN], device=device).view(3, 1, 1)
    return mean, torch.tensor([1 / (255 * value) for value in STD], device=device).view(3, 1, 1)


def _pieces(n: int, numbers: int, device: torch.device) -> Iterator[slice]:
    """Slices of a batch of ``n`` images of so many ``numbers``, each small enough for the CPU's cache."""
    step = torch.get_num_threads() * max(1, _CHUNK // max(1, numbers)) if device.type == "cpu" else max(1, n)
    return (slice(begin, begin + step) for begin in range(0, n, step))


@final
@dataclass(frozen=True)
class CenterSquare:
    """The central ``crop``×``crop`` pixels, resized to ``size``×``size`` where that differs, normalised."""

    crop: int
    size: int

    def __call__(self, x: Tensor) -> Tensor:
        """Images [batch, 3, height, width] uint8 as float32 [batch, 3, size, size]."""
        top, left = round((x.shape[2] - self.crop) / 2), round((x.shape[3] - self.crop) / 2)
        x = x[:, :, top : top + self.crop, left : left + self.crop]
        out = empty_batch((len(x), 3, self.size, self.size), x.device)
        mean, scale = _moments(x.device)
        for rows in _pieces(len(x), 3 * self.crop * self.crop, x.device):
            part = x[rows].float()
            if self.crop != self.size:
                part = functional.interpolate(part, (self.size, self.size), mode="bilinear", antialias=True)
            torch.mul(part.sub_(mean), scale, out=out[rows])
        return out


@final
@dataclass(frozen=True)
class RandomBox:
    """A random box of each image, resized to ``size``×``size``, mirrored with probability ``mirror``, normalised."""

    size: int
    scale: tuple[float, float] = (0.7, 1.0)
    ratio: tuple[float, float] = (0.75, 4 / 3)
    mirror: float = 0.5

    def __call__(self, x: Tensor, rng: np.random.Generator) -> Tensor:
        """Images [batch, 3, height, width] uint8 as float32 [batch, 3, size, size]; what is drawn depends on ``rng`` only."""
        n, height, width = len(x), x.shape[2], x.shape[3]
        top, left, h, w = random_boxes(n, height, width, scale=self.scale, ratio=self.ratio, rng=rng)
        mirrored = rng.random(n) < self.mirror
        across = _positions(np.where(mirrored, left + w, left), np.where(mirrored, -w, w), width, self.size)
        down = _positions(top, h, height, self.size)
        out = empty_batch((n, 3, self.size, self.size), x.device)
        mean, scale = _moments(x.device)
        for rows in _pieces(n, 3 * height * width, x.device):
            part = x[rows].float()
            places = part.new_empty(len(part), 2, self.size, self.size)  # two planes are written faster than pairs
            places[:, 0] = torch.from_numpy(across[rows, None, :]).to(x.device, non_blocking=True)
            places[:, 1] = torch.from_numpy(down[rows, :, None]).to(x.device, non_blocking=True)
            grid = places.permute(0, 2, 3, 1)
            boxes = functional.grid_sample(part, grid, padding_mode="border", align_corners=False)
            torch.mul(boxes.sub_(mean), scale, out=out[rows])
        return out


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
