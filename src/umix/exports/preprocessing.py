"""The first part of an exported model: from inputs as its user has them to the inputs of the net."""

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

from torch import Tensor, nn

#: The size of an axis; ``n`` and ``length`` differ from batch to batch.
Size = int | Literal["n", "length"]
#: The fewest token ids that a text may have in an exported model.
SHORTEST = 2


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
    """A column of a table that an exported model takes: a number, or one of ``values``, the texts of a category.

    The code of a value is its place in ``values``. That of a missing one is ``missing``, and that of any other text -1.
    """

    name: str
    kind: Literal["number", "category"]
    values: tuple[str, ...] = ()
    missing: int = -1

    def as_json(self) -> dict[str, Any]:
        known = {"values": list(self.values), "missing": self.missing} if self.kind == "category" else {}
        return {"name": self.name, "kind": self.kind, **known}


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
