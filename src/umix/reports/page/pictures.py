"""Small pictures for a page: of image files, and of inputs that have the shape of an image; as data addresses."""

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np

#: The longer side of a thumbnail, in pixels.
SIZE = 72


def thumbnail_of_file(path: str) -> str | None:
    """The image at ``path``, small, as a data address; None where it is not there or cannot be decoded."""
    from PIL import Image, ImageOps

    try:
        with Image.open(Path(path)) as file:
            file.draft("RGB", (2 * SIZE, 2 * SIZE))
            image = ImageOps.exif_transpose(file).convert("RGB")
    except Exception:  # Pillow has many kinds for broken files, and a report does without the picture
        return None
    image.thumbnail((SIZE, SIZE))
    return _address(image, "JPEG", quality=70)


def thumbnail_of_array(x: np.ndarray) -> str | None:
    """Inputs [1, 2 or 3 channels, height, width] as a picture, scaled to their own range; None for other shapes.

    Two channels are drawn red and green.
    """
    from PIL import Image

    if x.ndim != 3 or x.shape[0] > 3 or min(x.shape[1:]) < 2:
        return None
    low, high = float(x.min()), float(x.max())
    pixels = ((x - low) / (high - low or 1.0) * 255).astype(np.uint8)
    if len(pixels) == 1:
        pixels = np.repeat(pixels, 3, axis=0)
    elif len(pixels) == 2:
        pixels = np.concatenate([pixels, np.zeros_like(pixels[:1])])
    image = Image.fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0)))
    factor = max(1, round(SIZE / max(image.size)))
    if factor > 1:
        image = image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)
    else:
        image.thumbnail((SIZE, SIZE))
    return _address(image, "PNG", optimize=True)


def _address(image: Any, form: str, **options: Any) -> str:
    content = io.BytesIO()
    image.save(content, form, **options)
    return f"data:image/{form.lower()};base64,{base64.b64encode(content.getvalue()).decode()}"
