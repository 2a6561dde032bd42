"""Boxes resized row by row and column by column, against Pillow and torch."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torch.nn import functional

from umix.data.images.box_resampling import BoxResampling, lower_pixels
from umix.data.images.transforms import random_boxes

MEAN, SCALE = torch.tensor([10.0, 120.0, 200.0]).view(3, 1, 1), torch.tensor([0.02, 0.5, 1.0]).view(3, 1, 1)
PLAIN = {"mean": torch.zeros(3, 1, 1), "scale": torch.ones(3, 1, 1)}


def images(n, height, width, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).integers(0, 256, (n, 3, height, width), dtype=np.uint8))


def boxes(n, height, width, seed=0, *, scale=(0.2, 1.0)):
    """Starts and sides of random boxes down and across, half of them mirrored."""
    rng = np.random.default_rng(seed)
    top, left, h, w = random_boxes(n, height, width, scale=scale, ratio=(0.5, 2.0), rng=rng)
    mirrored = rng.random(n) < 0.5
    return (top, h), (np.where(mirrored, left + w, left), np.where(mirrored, -w, w))


def resampled(x, down, across, size, *, mean=MEAN, scale=SCALE):
    height, width = x.shape[2:]
    resampling = BoxResampling(down, across, height=height, width=width, size=size, mean=mean, scale=scale)
    out = torch.full((len(x), 3, size, size), torch.nan)
    for number, image in enumerate(x):
        resampling.write(image, number, out[number])
    return out


@given(st.integers(2, 40), st.integers(2, 40), st.integers(1, 30), st.integers(0, 99))
@settings(deadline=None, max_examples=60)
def test_boxes_are_those_of_grid_sample_in_float64(height, width, size, seed):
    x, (down, across) = images(3, height, width, seed), boxes(3, height, width, seed)
    steps = (np.arange(size) + 0.5) / size
    rows, columns = (torch.from_numpy(start[:, None] + side[:, None] * steps) for start, side in (down, across))
    grid = torch.stack(
        [
            (2 * columns / width - 1)[:, None, :].expand(3, size, size),
            (2 * rows / height - 1)[:, :, None].expand(3, size, size),
        ],
        dim=-1,
    )
    expected = functional.grid_sample(x.double(), grid, padding_mode="border", align_corners=False)
    torch.testing.assert_close(resampled(x, down, across, size, **PLAIN).double(), expected, atol=1e-3, rtol=0)


@pytest.mark.parametrize("size", [32, 50])
def test_enlarged_boxes_are_those_of_pillow(size):
    x, (down, across) = images(6, 24, 30), boxes(6, 24, 30)
    got = resampled(x, down, across, size, **PLAIN).numpy()
    for image, found, top, h, left, w in zip(x.numpy(), got, *down, *across, strict=True):
        box = (min(left, left + w), top, max(left, left + w), top + h)
        for channel, plane in zip(image, found, strict=True):
            expected = np.asarray(
                Image.fromarray(channel.astype(np.float32)).resize((size, size), Image.Resampling.BILINEAR, box)
            )
            np.testing.assert_allclose(plane, expected[:, ::-1] if w < 0 else expected, atol=1e-2)


def test_the_mean_is_taken_off_and_the_rest_is_scaled():
    x, (down, across) = images(4, 20, 16), boxes(4, 20, 16)
    expected = (resampled(x, down, across, 9, **PLAIN) - MEAN) * SCALE
    assert torch.equal(resampled(x, down, across, 9), expected)


def test_the_whole_image_in_its_own_size_is_the_image():
    x, whole = images(2, 12, 12), (np.zeros(2), np.full(2, 12.0))
    assert torch.equal(resampled(x, whole, whole, 12, **PLAIN), x.float())
    mirrored = (np.full(2, 12.0), np.full(2, -12.0))
    assert torch.equal(resampled(x, whole, mirrored, 12, **PLAIN), x.float().flip(3))


def test_pixels_beyond_the_border_are_those_of_the_border():
    pixel, share = lower_pixels(np.array([-3.0]), np.array([10.0]), whole=4, size=10)
    assert pixel.tolist() == [[0, 0, 0, 0, 1, 2, 3, 3, 3, 3]]
    assert (share == 0).all()


def test_threads_do_not_write_into_each_others_memory():
    x, (down, across) = images(64, 40, 36), boxes(64, 40, 36)
    expected = resampled(x, down, across, 33)
    resampling = BoxResampling(down, across, height=40, width=36, size=33, mean=MEAN, scale=SCALE)
    for _ in range(5):
        out = torch.full_like(expected, torch.nan)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda i, out=out: resampling.write(x[i], i, out[i]), range(64)))
        assert torch.equal(out, expected)


def test_memory_of_an_evaluation_serves_training():
    x, (down, across) = images(2, 18, 18), boxes(2, 18, 18)
    with torch.inference_mode():
        first = resampled(x, down, across, 7).clone()
    assert torch.equal(resampled(x, down, across, 7), first)
