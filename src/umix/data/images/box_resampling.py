"""Boxes of large images, resized by bilinear interpolation on a CPU: first between the rows of an image, then between its columns.

``grid_sample`` looks up four pixels for every pixel and channel. Whole rows are copied faster than single pixels, and once every
row lies where it is needed, only two pixels of it have to be looked up. For images of 256×256 this takes 0.6 of the time.
"""

import threading
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

CHANNELS = 3

Floats = NDArray[np.float64]


@final
class BoxResampling:
    """Boxes of images uint8 [n, 3, height, width] resized to ``size``×``size``, minus ``mean``, times ``scale``.

    ``down`` and ``across`` are start and side [n] of each box in pixels; a negative side runs backwards, which mirrors the box.
    ``mean`` and ``scale`` are [3, 1, 1].
    """

    def __init__(
        self,
        down: tuple[Floats, Floats],
        across: tuple[Floats, Floats],
        *,
        height: int,
        width: int,
        size: int,
        mean: Tensor,
        scale: Tensor,
    ) -> None:
        above, share = lower_pixels(*down, whole=height, size=size)
        planes = height * np.arange(CHANNELS)[:, None]
        self._above, self._below = (
            _tensors((rows[:, None] + planes).reshape(len(rows), -1))
            for rows in (above, np.minimum(above + 1, height - 1))
        )
        self._down = _tensors(np.tile(share.astype(np.float32), CHANNELS)[:, :, None])
        left, share = lower_pixels(*across, whole=width, size=size)
        self._columns = _tensors(np.concatenate([left, np.minimum(left + 1, width - 1)], axis=1))
        self._across = _tensors(share.astype(np.float32))
        self._size, self._mean, self._scale = size, mean, scale

    def write(self, image: Tensor, number: int, out: Tensor) -> None:
        """Write box ``number``, cut from its ``image`` uint8 [3, height, width], to ``out`` float32 [3, size, size]."""
        size, image = self._size, image.flatten(0, 1)
        stored, above, below, pairs, left, right = _SCRATCH.tensors(size, image.shape[1])
        above.copy_(torch.index_select(image, 0, self._above[number], out=stored))
        below.copy_(torch.index_select(image, 0, self._below[number], out=stored))
        rows = torch.lerp(above, below, self._down[number], out=above)
        torch.index_select(rows, 1, self._columns[number], out=pairs)
        torch.lerp(left, right, self._across[number], out=out.view(-1, size))
        out.sub_(self._mean).mul_(self._scale)


def lower_pixels(start: Floats, side: Floats, *, whole: int, size: int) -> tuple[NDArray[np.int64], Floats]:
    """The pixel at or before each pixel of a side resized to ``size``, and the share of the next one, [n, size] each.

    Pixels beyond the ``whole`` are those of its border.

    >>> pixel, share = lower_pixels(np.array([0.0]), np.array([4.0]), whole=4, size=2)
    >>> pixel.tolist(), share.tolist()
    ([[0, 2]], [[0.5, 0.5]])
    """
    place = start[:, None] + (np.arange(size) + 0.5) * side[:, None] / size - 0.5
    place = place.clip(0, whole - 1)
    lower = np.floor(place)
    return lower.astype(np.int64), place - lower


def _tensors(values: NDArray[np.generic]) -> tuple[Tensor, ...]:
    """A tensor for each of ``values``: taking one out of a tensor for each image would cost as much as computing with it.

    They are computed by NumPy, because torch would start threads that wait actively for a while when they are done.
    """
    return torch.from_numpy(values).unbind()


@final
class _Scratch(threading.local):
    """Memory for what is computed on the way, which every thread keeps: new memory for each image would double the time."""

    def __init__(self) -> None:
        self._sides: tuple[int, int] | None = None
        self._tensors: tuple[Tensor, ...] = ()

    def tensors(self, size: int, width: int) -> tuple[Tensor, ...]:
        """Stored rows; rows above and below as numbers; pairs of pixels, the left and the right of them."""
        if self._sides != (size, width):
            n = CHANNELS * size
            with torch.inference_mode(False):  # used by training too
                stored, pairs = torch.empty(n, width, dtype=torch.uint8), torch.empty(n, 2 * size)
                above, below = torch.empty(n, width), torch.empty(n, width)
                self._tensors = stored, above, below, pairs, pairs[:, :size], pairs[:, size:]
            self._sides = size, width
        return self._tensors


_SCRATCH = _Scratch()
