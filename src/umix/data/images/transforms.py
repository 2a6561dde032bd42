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

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, for values in [0, 1]
_TRIES = 10

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True)
class CenterSquare:
    """The central ``crop``×``crop`` pixels, resized to ``size``×``size`` where that differs, normalised."""

    crop: int
    size: int

    def __call__(self, x: Tensor) -> Tensor:
        """Images [batch, 3, height, width] uint8 as float32 [batch, 3, size, size]."""
        crop, size = self.crop, self.size
        top, left = round((x.shape[2] - crop) / 2), round((x.shape[3] - crop) / 2)
        part = x[:, :, top : top + crop, left : left + crop].float()
        if crop != size:
            part = functional.interpolate(part, (size, size), mode="bilinear", antialias=True)
        return _normalized(part)


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
        n, _, height, width = x.shape
        top, left, h, w = random_boxes(n, height, width, scale=self.scale, ratio=self.ratio, rng=rng)
        mirrored = rng.random(n) < self.mirror
        start, side = np.where(mirrored, left + w, left), np.where(mirrored, -w, w)
        across, down = _positions(start, side, width, self.size), _positions(top, h, height, self.size)
        grid = torch.from_numpy(np.stack(np.broadcast_arrays(across[:, None, :], down[:, :, None]), axis=-1))
        boxes = functional.grid_sample(x.float(), grid.to(x.device), padding_mode="border", align_corners=False)
        return _normalized(boxes)


def _normalized(x: Tensor) -> Tensor:
    """``x``, values in [0, 255], changed in place: minus ImageNet's mean, over its deviation."""
    mean = torch.tensor([255 * value for value in MEAN], device=x.device).view(3, 1, 1)
    scale = torch.tensor([1 / (255 * value) for value in STD], device=x.device).view(3, 1, 1)
    return x.sub_(mean).mul_(scale)


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
    first, column, fitting = fits.argmax(axis=0), np.arange(n), fits.any(axis=0)
    fallback = min(max(width / height, ratio[0]), ratio[1])
    w = np.where(fitting, w[first, column], min(width, round(height * fallback)))
    h = np.where(fitting, h[first, column], min(height, round(width / fallback)))
    top = np.where(fitting, np.floor(rng.random(n) * (height - h + 1)), (height - h) // 2)
    left = np.where(fitting, np.floor(rng.random(n) * (width - w + 1)), (width - w) // 2)
    return top, left, h, w
