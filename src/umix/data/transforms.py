"""From batches of stored images, uint8 [batch, 3, height, width], to what nets take: no Python per example, on the batch's device.

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

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, for values in [0, 1]
_TRIES = 10
_CHUNK = 2**19  # numbers that are resized at once on a CPU: what stays in its cache

Floats = NDArray[np.float64]


def normalized(x: Tensor) -> Tensor:
    """Images [batch, 3, height, width] with values in [0, 255] as float32 with ImageNet's mean 0 and deviation 1.

    A float32 batch is overwritten: at these sizes memory costs more than arithmetic.
    """
    mean = torch.tensor([255 * value for value in MEAN], device=x.device).view(3, 1, 1)
    scale = torch.tensor([1 / (255 * value) for value in STD], device=x.device).view(3, 1, 1)
    return x.float().sub_(mean).mul_(scale)


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
        if self.crop != self.size:
            x = functional.interpolate(x.float(), (self.size, self.size), mode="bilinear", antialias=True)
        return normalized(x)


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
        out = torch.empty(n, 3, self.size, self.size, device=x.device)
        step = max(1, _CHUNK // (3 * height * width)) if x.device.type == "cpu" else max(1, n)
        for begin in range(0, n, step):
            rows = slice(begin, begin + step)
            part = x[rows].float()
            grid = part.new_empty(len(part), self.size, self.size, 2)
            grid[..., 0] = torch.from_numpy(across[rows, None, :]).to(x.device, non_blocking=True)
            grid[..., 1] = torch.from_numpy(down[rows, :, None]).to(x.device, non_blocking=True)
            out[rows] = normalized(functional.grid_sample(part, grid, padding_mode="border", align_corners=False))
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
