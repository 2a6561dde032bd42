"""Tables: columns of numbers and of categories become the matrix that the net takes, inside of the exported model."""

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from umix.data.tables.codes import CodedColumn
from umix.data.tables.input_columns import InputColumn
from umix.data.tables.preprocessing import FARTHEST
from umix.exports.preprocessing import ColumnInput, Preprocessing, TensorInput

NUMBERS, CODES = "numbers", "codes"


class TableInputs(Preprocessing):
    """Takes ``numbers`` [n, columns], NaN where missing, and ``codes`` [n, columns]; one of them may have no columns."""

    def __init__(self, columns: Sequence[ColumnInput]) -> None:
        super().__init__()
        self.columns = tuple(columns)
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

    def given(self, tensors: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Numbers and codes, [n, 0] where there are none."""
        first = tensors[0]
        numbers = first if self.numbers else first[:, :0].float()
        codes = tensors[-1] if self.categories else first[:, :0].long()
        return numbers, codes


@final
class CodedTable(TableInputs):
    """Makes the columns of codes and raw numbers, NaN where missing, that nets with an encoder of their own take."""

    place: Tensor

    def __init__(self, columns: Sequence[CodedColumn]) -> None:
        used = [one for one in columns if one.width]
        super().__init__([_coded(one) for one in used])
        n, place, seen = len(self.numbers), [], {"number": 0, "category": 0}
        for column in self.columns:
            place.append(seen[column.kind] + (n if column.kind == "category" else 0))
            seen[column.kind] += 1
        self.register_buffer("place", torch.tensor(place), persistent=False)

    def forward(self, *tensors: Tensor) -> Tensor:
        numbers, codes = self.given(tensors)
        known = numbers.where(~numbers.isinf(), torch.nan)
        values = codes.float().where(codes >= 0, torch.nan)
        return torch.cat([known, values], dim=1).index_select(1, self.place)


@final
class OneHotTable(TableInputs):
    """Makes standardised numbers, 0/1 columns of categories, and marks of missing numbers, as ``TablePreprocessing`` does."""

    mean: Tensor
    deviation: Tensor
    origin: Tensor
    code: Tensor
    marked: Tensor
    place: Tensor

    def __init__(self, columns: Sequence[InputColumn]) -> None:
        used = [one for one in columns if one.width]
        super().__init__([_one_hot(one) for one in used])
        numbers = [one for one in used if one.kind == "number"]
        hot = [
            (column, code)
            for column, one in enumerate(one for one in used if one.kind == "category")
            for code in range(len(one.values) + one.gaps - len(one.indicators), len(one.values) + one.gaps)
        ]
        marked = [column for column, one in enumerate(numbers) if one.marked]
        for name, values in (
            ("mean", torch.tensor([one.mean[0] for one in numbers], dtype=torch.float64)),
            ("deviation", torch.tensor([one.deviation[0] for one in numbers], dtype=torch.float64)),
            ("origin", torch.tensor([column for column, _ in hot], dtype=torch.int64)),
            ("code", torch.tensor([code for _, code in hot], dtype=torch.int64)),
            ("marked", torch.tensor(marked, dtype=torch.int64)),
            ("place", torch.tensor(_places(used, len(numbers), len(hot), len(marked)), dtype=torch.int64)),
        ):
            self.register_buffer(name, values, persistent=False)

    def forward(self, *tensors: Tensor) -> Tensor:
        numbers, codes = self.given(tensors)
        known = numbers.where(~numbers.isinf(), torch.nan)
        # Rounded to float32 after each step, as the columns are that umix predict computes with.
        scaled = known.double().sub(self.mean).float().double().div(self.deviation).float()
        scaled = scaled.clamp(-FARTHEST, FARTHEST).nan_to_num(0.0)
        hot = codes.index_select(1, self.origin).eq(self.code).float()
        marks = known.index_select(1, self.marked).isnan().float()
        return torch.cat([scaled, hot, marks], dim=1).index_select(1, self.place)


def _places(columns: Sequence[InputColumn], numbers: int, hot: int, marks: int) -> list[int]:
    """Where each column of the matrix is among all numbers, then all 0/1 columns, then all marks."""
    seen, found = {"number": 0, "category": numbers}, list[int]()
    for one in columns:
        found += range(seen[one.kind], seen[one.kind] + one.width)
        seen[one.kind] += one.width
    return [*found, *range(numbers + hot, numbers + hot + marks)]


def _coded(one: CodedColumn) -> ColumnInput:
    """A column of codes as an input; missing has no code of its own."""
    return ColumnInput(one.name, "category" if one.kind == "category" else "number", one.values)


def _one_hot(one: InputColumn) -> ColumnInput:
    """A column of ``TablePreprocessing`` as an input; missing has a code if it was a value of its own."""
    if one.kind == "category":
        return ColumnInput(one.name, "category", one.values, len(one.values) if one.gaps else -1)
    return ColumnInput(one.name, "number")
