"""A net for tables: numbers cut into bins, categories as 0/1 columns, and linear layers.

Linear layers on standardised numbers find it hard to fit functions that jump or bend, which trees fit at once. A number is
therefore also given as a piecewise linear code (Gorishniy et al., On Embeddings for Numerical Features in Tabular Deep
Learning, NeurIPS 2022, section 3.2): for each bin, how much of it lies below the number, from 0 to 1. Then one linear layer is
any function that is linear within bins.

Differs from the paper:

- A value that fills a bin alone is an edge, and the other edges are quantiles of the rest (``core/bins.py``).
- The standardised number stays an input beside its code. What is missing is 0 in both, which no number is.
- The number of bins is bounded for all numbers together.
- The code goes into the first hidden layer, not through a layer of its own for each column.
"""

from typing import Annotated, ClassVar, Self, final

import torch
from pydantic import Field
from torch import Tensor, nn

from umix.core.bins import bin_edges
from umix.errors import UserError
from umix.nets.net import Encoder, Net, NetSettings

_FARTHEST = 10.0  # deviations
_MOST_BINS = 256  # of all numbers together, so that the first layer stays small where a table has many of them


@final
class TableEncoder(Encoder):
    """From codes and raw numbers, NaN where missing, to standardised numbers, their bins, and 0/1 columns.

    ``categories`` has the number of values of each column, 0 for a number. What is missing, or a code that is no place among the
    values, is 0 in all of its columns. With bins no number that is there looks like this: the mean lies above some of them.
    """

    numbers: Tensor  # the columns that are numbers
    center: Tensor  # [numbers], their means
    slope: Tensor  # [numbers, 1 + bins], of the standardised number and of the bins
    offset: Tensor
    least: Tensor  # [1 + bins]
    most: Tensor
    origin: Tensor  # the column of every 0/1 column, and the code that it is 1 for
    code: Tensor

    def __init__(self, categories: tuple[int, ...], bins: int) -> None:
        super().__init__()
        numbers = [column for column, size in enumerate(categories) if not size]
        codes = [(column, value) for column, size in enumerate(categories) for value in range(size)]
        fixed = {
            "numbers": torch.tensor(numbers, dtype=torch.int64),
            "least": torch.tensor([-_FARTHEST] + [0.0] * bins),
            "most": torch.tensor([_FARTHEST] + [1.0] * bins),
            "origin": torch.tensor([column for column, _ in codes], dtype=torch.int64),
            "code": torch.tensor([float(value) for _, value in codes]),
        }
        for name, tensor in fixed.items():
            self.register_buffer(name, tensor, persistent=False)
        self.register_buffer("center", torch.zeros(len(numbers)))
        self.register_buffer("slope", torch.zeros(len(numbers), 1 + bins))
        self.register_buffer("offset", torch.zeros(len(numbers), 1 + bins))

    @property
    def width(self) -> int:
        """How many numbers a row becomes."""
        return self.slope.numel() + len(self.code)

    def fit(self, x: Tensor) -> None:
        for buffer in (self.center, self.slope, self.offset):
            buffer.zero_()
        for place, column in enumerate(self.numbers.tolist()):
            values = x[:, column].double()
            values = values[values.isfinite()]
            if len(values) and values.min() < values.max():
                self.center[place] = values.mean()
                low, high = _pieces(values - self.center[place], self.slope.shape[1] - 1)
                self.slope[place, : len(low)] = 1 / (high - low)
                self.offset[place, : len(low)] = -low / (high - low)

    def forward(self, x: Tensor) -> Tensor:
        """The numbers of a batch, float32 [batch, width]: each number standardised and in bins, then the 0/1 columns."""
        parts = []
        if len(self.numbers):
            # The difference of large numbers that are near each other is exact; a product first would lose its digits.
            centered = x.index_select(1, self.numbers).sub_(self.center)
            scaled = torch.addcmul(self.offset, centered.unsqueeze(2), self.slope).clamp_(self.least, self.most)
            parts.append(scaled.nan_to_num_(0.0).flatten(1))
        if len(self.code):
            parts.append((x.index_select(1, self.origin) == self.code).to(x.dtype))
        return torch.cat(parts, dim=1) if len(parts) > 1 else parts[0]


def _pieces(values: Tensor, bins: int) -> tuple[Tensor, Tensor]:
    """What becomes 0 and what becomes 1, [1 + bins or fewer] each: mean and a deviation above it, then both ends of every bin."""
    mean, deviation = values.mean(dim=0, keepdim=True), values.std(correction=0)
    edges = bin_edges(values, bins) if bins else values[:0]
    return torch.cat([mean, edges[:-1]]), torch.cat([mean + deviation, edges[1:]])


@final
class Tabular(NetSettings):
    """Linear layers with ReLU on the columns of a table: numbers standardised and in bins, categories as 0/1 columns."""

    name: ClassVar[str] = "tabular"
    takes_codes: ClassVar[bool] = True
    from_data: ClassVar[tuple[str, ...]] = ("categories",)

    hidden: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        (64, 64), description="widths of the hidden layers; empty for a linear classifier"
    )
    dropout: float = Field(0.0, ge=0, lt=1, description="share of hidden units dropped in training")
    bins: int = Field(16, ge=0, description="most bins of a number, fewer where there are many; 0: standardised only")
    categories: tuple[int, ...] = Field(
        (), description="values of each column that holds codes, 0 for numbers; the data say it"
    )

    def on_columns(self, categories: tuple[int, ...]) -> Self:
        return self.model_copy(update={"categories": categories})

    def build(self, example: Tensor, n_classes: int) -> Net:
        if example.dim() != 1 or not example.is_floating_point():
            raise UserError(
                f"The net tabular must be given rows of a table, got examples of shape {list(example.shape)} and type "
                f"{str(example.dtype).removeprefix('torch.')}; take another net."
            )
        categories = self.categories or (0,) * len(example)
        share = max(1, _MOST_BINS // max(1, categories.count(0)))
        encoder = TableEncoder(categories, min(self.bins, share))
        layers: list[nn.Module] = []
        width = encoder.width
        for hidden in self.hidden:
            layers += [nn.Linear(width, hidden), nn.ReLU()]
            if self.dropout:
                layers.append(nn.Dropout(self.dropout))
            width = hidden
        return Net(nn.Sequential(*layers), nn.Linear(width, n_classes), encoder=encoder, is_linear=not layers)
