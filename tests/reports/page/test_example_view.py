"""Pictures are small, and what is no picture has none."""

import base64
import io
from pathlib import Path

import numpy as np
from PIL import Image

from umix.reports.page.example_view import SIZE, shortened, thumbnail_of_array, thumbnail_of_file


def opened(address: str | None) -> Image.Image:
    assert address is not None
    return Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2])))


def test_an_image_file_becomes_a_thumbnail(tmp_path: Path) -> None:
    Image.new("RGB", (640, 320), (200, 10, 10)).save(tmp_path / "<b>.jpg")
    picture = opened(thumbnail_of_file(str(tmp_path / "<b>.jpg")))
    assert picture.size == (SIZE, SIZE // 2)
    assert thumbnail_of_file(str(tmp_path / "nowhere.jpg")) is None
    (tmp_path / "torn.png").write_bytes(b"not an image")
    assert thumbnail_of_file(str(tmp_path / "torn.png")) is None


def test_two_channels_are_red_and_green() -> None:
    x = np.zeros((2, 8, 8), dtype=np.float32)
    x[1, 2, 3] = 1.0
    pixels = np.asarray(opened(thumbnail_of_array(x)))
    assert pixels.shape == (72, 72, 3)
    assert pixels[2 * 9 + 4, 3 * 9 + 4].tolist() == [0, 255, 0]
    assert pixels[0, 0].tolist() == [0, 0, 0]


def test_what_has_another_shape_is_no_picture() -> None:
    assert thumbnail_of_array(np.zeros(5)) is None
    assert thumbnail_of_array(np.zeros((7, 8, 8))) is None


def test_long_texts_are_cut() -> None:
    assert len(shortened("word " * 500)) <= 240
    assert shortened("a\nb") == "a b"
