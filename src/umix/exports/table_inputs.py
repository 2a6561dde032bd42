"""Tables: columns of numbers and of categories become the matrix that the net takes, inside of the exported model."""

from typing import final

import torch
from torch import Tensor

from umix.data.tables.one_hot import OneHot
from umix.data.tables.preprocessing import TablePreprocessing
from umix.exports.preprocessing import ColumnInput, Preprocessing, TensorInput

NUMBERS, CODES = "numbers", "codes"


@final
class TableInputs(Preprocessing):
    """Takes ``numbers`` [n, columns], NaN where missing, and ``codes`` [n, columns]; one of them may have no columns.

    It makes the matrix that ``reader`` makes of a table without dates and long texts.
    """

    place: Tensor

    def __init__(self, reader: TablePreprocessing) -> None:
        super().__init__()
        used = [one for one in reader.input_columns if one.width]
        self.columns = tuple(
            ColumnInput(one.name, "category" if one.kind == "category" else "number", one.values) for one in used
        )
        self.one_hot = OneHot(used) if reader.one_hot else None
        tensors = []
        if self.numbers:
            names = ", ".join(column.name for column in self.numbers)
            tensors.append(
                TensorInput(NUMBERS, "float32", ("n", len(self.numbers)), f"the columns {names}; NaN where missing")
            )
        if self.categories:
            names = ", ".join(column.name for column in self.categories)
            meaning = f"the columns {names}: the place of the value among its values, -1 for any other"
            tensors.append(TensorInput(CODES, "int64", ("n", len(self.categories)), meaning))
        self.tensors = tuple(tensors)
        places = {column.name: place for place, column in enumerate((*self.numbers, *self.categories))}
        place = torch.tensor([places[column.name] for column in self.columns], dtype=torch.int64)
        self.register_buffer("place", place, persistent=False)

    def forward(self, *tensors: Tensor) -> Tensor:
        first = tensors[0]
        numbers = first if self.numbers else first[:, :0].float()
        codes = tensors[-1] if self.categories else first[:, :0].long()
        finite = numbers.where(~numbers.isinf(), torch.nan)
        values = codes.float().where(codes >= 0, torch.nan)
        matrix = torch.cat([finite, values], dim=1).index_select(1, self.place)
        return matrix if self.one_hot is None else self.one_hot(matrix)
