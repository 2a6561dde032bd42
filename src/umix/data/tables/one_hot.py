"""From codes and numbers with gaps to what most nets take: 0/1 columns and standardised numbers without gaps."""

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor, nn

from umix.data.tables.columns import TableColumn

#: Standardised numbers are cut at plus and minus so many deviations.
FARTHEST = 10.0
_ROWS = 2**12  # at a time: they stay in the cache of the processor


@final
class OneHot(nn.Module):
    """Makes the matrix of a net of codes and numbers with NaN for gaps, [n, columns] to [n, width].

    - A quantity is standardised with the mean and deviation of training and cut at ±10; a gap becomes 0, the mean.
    - A category is a 0/1 column for each value, and one for gaps if training had some; of two only the second has a column.
      Values that training did not have count as gaps.
    - Behind all of these is a 0/1 column for each column of quantities that had gaps in training, which marks them.
    """

    quantities: Tensor  # columns of the codes that are quantities, and their mean and deviation in training
    mean: Tensor
    deviation: Tensor
    origin: Tensor  # of each 0/1 column, the column of the codes and the code that it is 1 for
    code: Tensor
    gap_code: Tensor  # of each column of the codes, the code that stands for a gap; of a quantity any
    marked: Tensor  # columns of the codes whose gaps are marked
    order: Tensor  # where each column of the matrix is among all quantities, then all 0/1 columns, then all marks

    def __init__(self, columns: Sequence[TableColumn]) -> None:
        super().__init__()
        quantities, hot, marked, mixed = list[int](), list[tuple[int, int]](), list[int](), list[str]()
        gap_codes, place = list[float](), 0
        for one in columns:
            if one.kind == "category" and one.width:
                n = len(one.values) + one.gaps
                hot += [(place, code) for code in range(1 if n == 2 else 0, n)]
                mixed += ["hot"] * (1 if n == 2 else n)
            else:
                quantities += range(place, place + one.width)
                mixed += ["quantity"] * one.width
                marked += [place] if one.gaps and one.width else []
            gap_codes += [float(len(one.values))] * one.width
            place += one.width
        used = [one for one in columns if one.width and one.kind != "category"]
        first = {"quantity": iter(range(len(quantities))), "hot": iter(range(len(quantities), len(mixed)))}
        order = [*(next(first[kind]) for kind in mixed), *range(len(mixed), len(mixed) + len(marked))]
        for name, values in (
            ("quantities", torch.tensor(quantities, dtype=torch.int64)),
            ("mean", torch.tensor([mean for one in used for mean in one.mean], dtype=torch.float64)),
            ("deviation", torch.tensor([value for one in used for value in one.deviation], dtype=torch.float64)),
            ("origin", torch.tensor([column for column, _ in hot], dtype=torch.int64)),
            ("code", torch.tensor([float(code) for _, code in hot])),
            ("gap_code", torch.tensor(gap_codes)),
            ("marked", torch.tensor(marked, dtype=torch.int64)),
            ("order", torch.tensor(order, dtype=torch.int64)),
        ):
            self.register_buffer(name, values, persistent=False)
        self.in_order = order == sorted(order)

    @property
    def width(self) -> int:
        """How many numbers a row becomes."""
        return len(self.order)

    def forward(self, x: Tensor) -> Tensor:
        # Rounded to float32 after each step.
        scaled = x.index_select(1, self.quantities).double().sub(self.mean).float().double().div(self.deviation).float()
        scaled = scaled.clamp(-FARTHEST, FARTHEST).nan_to_num(0.0)
        gaps = x.isnan()
        hot = x.where(~gaps, self.gap_code).index_select(1, self.origin).eq(self.code).float()
        marks = gaps.index_select(1, self.marked).float()
        made = torch.cat([scaled, hot, marks], dim=1)
        return made if self.in_order else made.index_select(1, self.order)

    def whole(self, x: Tensor) -> Tensor:
        """The matrix of a whole table, made some rows at a time."""
        made = torch.empty(len(x), self.width)
        for part, rows in zip(made.split(_ROWS), x.split(_ROWS), strict=True):
            part.copy_(self(rows))
        return made
