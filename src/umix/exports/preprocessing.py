"""The first part of an exported model: from inputs as its user has them to the inputs of the net."""

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

import torch
from torch import Tensor, nn

from umix.data.arrays import ArrayPreprocessing, Standardize
from umix.data.images.image_folder import ImageReader
from umix.data.images.transforms import MEAN, STD

#: The size of an axis; ``n`` and ``length`` differ from batch to batch.
Size = int | Literal["n", "length"]
#: The fewest token ids that a text may have in an exported model.
SHORTEST = 2
#: The outputs of an exported model, in order. The first is the place of the class among the classes; ONNX gives its name.
OUTPUTS = ("label", "probabilities", "logits")
#: Stands for a missing date.
NO_DATE = -(2**63)


@final
@dataclass(frozen=True)
class TensorInput:
    """A tensor that an exported model takes; ``shape`` begins with ``n``, the number of rows, and ``meaning`` is for people."""

    name: str
    dtype: Literal["float32", "int64"]
    shape: tuple[Size, ...]
    meaning: str

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "dtype": self.dtype, "shape": list(self.shape), "meaning": self.meaning}


@final
@dataclass(frozen=True)
class ColumnInput:
    """A column of a table that an exported model takes: a number, a date, or one of ``values``, the texts of a category.

    The code of a value is its place in ``values``, and that of a missing one or any other text is -1. A date is its whole seconds
    since 1970-01-01 00:00, and ``NO_DATE`` where it is missing.
    """

    name: str
    kind: Literal["number", "category", "date"]
    values: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        values = {"values": list(self.values)} if self.kind == "category" else {}
        return {"name": self.name, "kind": self.kind, **values}


class Preprocessing(nn.Module, abc.ABC):
    """A module that makes the inputs of the net; ``left_out`` names in words what must be done before it."""

    tensors: tuple[TensorInput, ...]
    columns: tuple[ColumnInput, ...] = ()
    left_out: tuple[str, ...] = ()
    longest: int | None = None  # token ids of a text

    @abc.abstractmethod
    def forward(self, *tensors: Tensor) -> Tensor:
        """The inputs of the net, [n, ...], from the ``tensors`` that the exported model takes."""

    @property
    def numbers(self) -> tuple[ColumnInput, ...]:
        """The columns that are numbers."""
        return tuple(column for column in self.columns if column.kind == "number")

    @property
    def dates(self) -> tuple[ColumnInput, ...]:
        """The columns that are dates."""
        return tuple(column for column in self.columns if column.kind == "date")

    @property
    def categories(self) -> tuple[ColumnInput, ...]:
        """The columns that are categories."""
        return tuple(column for column in self.columns if column.kind == "category")


@final
class Ready(Preprocessing):
    """Takes the inputs of the net as they are."""

    def __init__(self, tensor: TensorInput, left_out: Sequence[str], *, longest: int | None = None) -> None:
        super().__init__()
        self.tensors, self.left_out, self.longest = (tensor,), tuple(left_out), longest

    def forward(self, *tensors: Tensor) -> Tensor:
        return tensors[0]


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


def input_names(preprocessing: Preprocessing) -> dict[str, str]:
    """The name of every input of the ONNX model, by the column or tensor it is; none may be called as an output is."""
    of = preprocessing.columns or preprocessing.tensors
    return {one.name: f"{one.name} (input)" if one.name in OUTPUTS else one.name for one in of}
