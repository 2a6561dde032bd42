"""Images on disk, decoded when they are needed."""

import hashlib
import os
import stat
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from umix.data.inputs import Inputs
from umix.errors import UserError

if TYPE_CHECKING:
    from PIL import Image


#: Pillow knows the format by the content. Others than these are not opened: for one of them it runs a program on the file.
_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")


@final
class Images(Inputs):
    """The images ``files`` (relative to ``folder``), uint8 [3, height, width], scaled to that size.

    The images of a batch are decoded by a thread for each core: Pillow releases the interpreter lock.

    ``fingerprint`` holds names, sizes of files and of images: a copied folder is the same data. ``stamp`` holds the times of
    modification too, so that images that changed are decoded again.
    """

    def __init__(self, folder: Path, files: Sequence[str], *, height: int, width: int) -> None:
        self.folder, self.files, self.shape = folder, list(files), (3, height, width)
        content = hashlib.sha256(f"{self.shape}".encode())
        times = hashlib.sha256(str(folder.resolve()).encode())
        missing = []
        for name in self.files:
            try:
                status = os.stat(os.path.join(folder, name))
            except (OSError, ValueError):  # ValueError: no file can have this name
                missing.append(name)
                continue
            content.update(f"{name}\0{status.st_size}\0".encode())
            times.update(status.st_mtime_ns.to_bytes(16, signed=True))
        if missing:
            raise UserError(
                f"{folder} must hold all {len(self.files)} images that are listed, but {len(missing)} are missing (first: "
                f"{missing[0]}); unpack the archive again or remove their rows."
            )
        self.fingerprint = content.hexdigest()[:32]
        self.stamp = hashlib.sha256(content.digest() + times.digest()).hexdigest()[:16]

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Tensor:
        return torch.from_numpy(self.pixels(index))

    def __getitems__(self, rows: list[int]) -> list[Tensor]:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(self.__getitem__, rows))

    def pixels(self, index: int) -> NDArray[np.uint8]:
        """Image ``index`` as uint8 [3, height, width]."""
        path = self.folder / self.files[index]
        try:
            return decode(path, height=self.shape[1], width=self.shape[2])
        except Exception as error:  # Pillow raises many types for broken files
            raise UserError(
                f"{path} must be an image that can be decoded, but it cannot ({error}); replace it or remove its row."
            ) from None


def decode(path: Path, *, height: int | None = None, width: int | None = None) -> NDArray[np.uint8]:
    """The image at ``path`` as uint8 [3, height, width], scaled by bilinear interpolation where it has another size."""
    from PIL import Image

    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError("it is no file")  # opening a pipe would wait for a writer
    with Image.open(path, formats=_FORMATS) as file:
        image = _rgb(_upright(file))
    target = (width or image.width, height or image.height)
    if image.size != target:
        image = image.resize(target, Image.Resampling.BILINEAR)
    planes = np.empty((3, image.height, image.width), np.uint8)
    for plane, band in zip(
        planes, "RGB", strict=True
    ):  # Pillow takes a band out faster than NumPy transposes the pixels
        plane.data.cast("B")[:] = image.tobytes("raw", band)
    return planes


def _upright(image: "Image.Image") -> "Image.Image":
    """The image as the camera was held: itself, not a copy, where it was held upright."""
    from PIL import ExifTags, ImageOps

    image.load()  # a PNG may say how it is turned after its pixels
    return image if image.getexif().get(ExifTags.Base.Orientation, 1) == 1 else ImageOps.exif_transpose(image)


def _rgb(image: "Image.Image") -> "Image.Image":
    """The image in RGB, itself where it is: transparent pixels on white, 16 bits reduced to 8."""
    from PIL import Image

    if image.mode == "RGB":
        return image
    if image.mode.startswith("I"):
        return Image.fromarray((np.asarray(image).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8)).convert("RGB")
    if image.mode == "F":
        raise ValueError("its pixels are floating-point numbers of no known range")
    if image.has_transparency_data:
        above = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", above.size, "white"), above).convert("RGB")
    return image.convert("RGB")
