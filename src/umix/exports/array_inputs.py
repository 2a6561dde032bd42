"""Arrays, standardised inside of the exported model."""

from typing import final

from torch import Tensor

from umix.data.arrays.preprocessing import ArrayPreprocessing, Standardize
from umix.exports.preprocessing import Preprocessing, TensorInput


@final
class ArrayInputs(Preprocessing):
    """Takes rows of an array as they are in the file, and does what ``reader`` does with them."""

    mean: Tensor | None
    scale: Tensor | None

    def __init__(self, reader: ArrayPreprocessing) -> None:
        super().__init__()
        done = "standardised inside" if reader.change.mean is not None else "taken as they are"
        self.tensors = (TensorInput(reader.x, "float32", ("n", *reader.shape), f"the array {reader.x!r}, {done}"),)
        self.channels_last = reader.change.channels_last
        for name, learned in (("mean", reader.change.mean), ("scale", reader.change.scale)):
            self.register_buffer(name, None if learned is None else learned.clone())

    def forward(self, *tensors: Tensor) -> Tensor:
        return Standardize(self.mean, self.scale, self.channels_last)(tensors[0])
