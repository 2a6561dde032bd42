"""Images, cut and normalised inside of the exported model."""

from typing import final

import torch
from torch import Tensor

from umix.data.images.image_folder import ImageReader
from umix.data.images.transforms import MEAN, STD
from umix.exports.preprocessing import Preprocessing, TensorInput


@final
class ImageInputs(Preprocessing):
    """Takes decoded images that were scaled to the size that they are stored in, as pixels from 0 to 255."""

    mean: Tensor
    scale: Tensor

    def __init__(self, reader: ImageReader) -> None:
        super().__init__()
        side = reader.side
        self.size, self.begin = reader.size, round((side - reader.size) / 2)
        self.tensors = (
            TensorInput("pixels", "float32", ("n", 3, side, side), f"RGB from 0 to 255, scaled to {side}×{side}"),
        )
        self.left_out = (f"decoding images and scaling them to {side}×{side} (bilinear, as Pillow does it)",)
        self.register_buffer("mean", torch.tensor([255 * value for value in MEAN]).view(3, 1, 1))
        self.register_buffer("scale", torch.tensor([1 / (255 * value) for value in STD]).view(3, 1, 1))

    def forward(self, *tensors: Tensor) -> Tensor:
        inside = slice(self.begin, self.begin + self.size)
        return (tensors[0][:, :, inside, inside] - self.mean) * self.scale
