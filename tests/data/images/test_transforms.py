"""Transforms of whole batches against references that go image by image, in NumPy."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from umix.data.images.transforms import MEAN, STD, CenterSquare, RandomBox, random_boxes


def images(n=5, height=20, width=16, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, 3, height, width), dtype=np.uint8)


def normalized(x):
    return (x / 255.0 - np.array(MEAN).reshape(3, 1, 1)) / np.array(STD).reshape(3, 1, 1)


def resized(image, top, left, h, w, size):
    """Bilinear interpolation of a box [3, h, w], pixel by pixel; taps beyond the image are its border."""
    out = np.zeros((3, size, size))
    for i in range(size):
        for j in range(size):
            y = top + (i + 0.5) * h / size - 0.5
            x = left + (j + 0.5) * w / size - 0.5
            y0, x0 = int(np.floor(y)), int(np.floor(x))
            for dy, dx in ((0, 0), (0, 1), (1, 0), (1, 1)):
                share = (1 - abs(y - y0 - dy)) * (1 - abs(x - x0 - dx))
                row, column = np.clip(y0 + dy, 0, image.shape[1] - 1), np.clip(x0 + dx, 0, image.shape[2] - 1)
                out[:, i, j] += share * image[:, row, column]
    return out


@pytest.mark.parametrize(("height", "width", "crop"), [(20, 16, 16), (16, 16, 12), (16, 16, 16), (21, 17, 8)])
def test_the_central_square_is_cut_and_normalised(height, width, crop):
    x = images(height=height, width=width)
    top, left = round((height - crop) / 2), round((width - crop) / 2)
    expected = normalized(x[:, :, top : top + crop, left : left + crop])
    got = CenterSquare(crop, crop)(torch.from_numpy(x))
    assert got.dtype == torch.float32
    np.testing.assert_allclose(got.numpy(), expected, atol=1e-5)


def test_the_central_square_is_enlarged_by_bilinear_interpolation():
    x = images()
    expected = np.stack([normalized(resized(image[:, 2:18], 0, 0, 16, 16, 24)) for image in x])
    np.testing.assert_allclose(CenterSquare(16, 24)(torch.from_numpy(x)).numpy(), expected, atol=1e-4)


def test_random_boxes_are_resized_by_bilinear_interpolation():
    x, transform = images(), RandomBox(12)
    got = transform(torch.from_numpy(x), np.random.default_rng(3)).numpy()
    rng = np.random.default_rng(3)
    boxes = random_boxes(len(x), 20, 16, scale=transform.scale, ratio=transform.ratio, rng=rng)
    mirrored = rng.random(len(x)) < 0.5
    assert 0 < mirrored.sum() < len(x)
    for image, found, flip, *box in zip(x, got, mirrored, *boxes, strict=True):
        expected = normalized(resized(image, *box, 12))
        np.testing.assert_allclose(found, expected[:, :, ::-1] if flip else expected, atol=1e-4)


def test_the_whole_image_unmirrored_is_the_evaluation():
    x = torch.from_numpy(images(height=16))
    whole = RandomBox(16, scale=(1, 1), ratio=(1, 1), mirror=0)(x, np.random.default_rng(0))
    torch.testing.assert_close(whole, CenterSquare(16, 16)(x), atol=1e-4, rtol=0)
    mirrored = RandomBox(16, scale=(1, 1), ratio=(1, 1), mirror=1)(x, np.random.default_rng(0))
    torch.testing.assert_close(mirrored, whole.flip(3), atol=1e-4, rtol=0)


def test_what_is_drawn_is_decided_by_the_generator_alone():
    x, transform = torch.from_numpy(images()), RandomBox(12)
    state = torch.get_rng_state()
    first, again = (transform(x, np.random.default_rng(1)) for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first, transform(x, np.random.default_rng(2)))
    assert torch.equal(torch.get_rng_state(), state)


def test_values_stay_in_the_range_of_the_image_and_the_batch_is_not_changed():
    x = torch.from_numpy(images())
    before = x.clone()
    values = RandomBox(12)(x, np.random.default_rng(0)).numpy()
    low, high = normalized(np.zeros((3, 1, 1))), normalized(np.full((3, 1, 1), 255.0))
    assert (values >= low - 1e-4).all()
    assert (values <= high + 1e-4).all()
    assert torch.equal(x, before)


@given(
    st.integers(8, 60), st.integers(8, 60), st.floats(0.05, 1), st.floats(0.2, 1), st.floats(1, 5), st.integers(0, 99)
)
def test_boxes_lie_inside_the_image_with_the_area_and_ratio_asked_for(height, width, least, narrow, wide, seed):
    rng = np.random.default_rng(seed)
    top, left, h, w = random_boxes(50, height, width, scale=(least, 1.0), ratio=(narrow, wide), rng=rng)
    for side, start, whole in ((h, top, height), (w, left, width)):
        assert (side >= 1).all()
        assert (start >= 0).all()
        assert (start + side <= whole).all()
        assert np.array_equal(side, np.rint(side))
    fallback = (top == (height - h) // 2) & (left == (width - w) // 2)
    area = h * w / (height * width)
    slack = (h + w + 1) / (height * width)  # sides are rounded to pixels
    assert ((area >= least - slack) | fallback).all()


def test_an_empty_batch_stays_empty():
    x = torch.zeros(0, 3, 16, 16, dtype=torch.uint8)
    assert RandomBox(8)(x, np.random.default_rng(0)).shape == (0, 3, 8, 8)
    assert CenterSquare(8, 8)(x).shape == (0, 3, 8, 8)
