"""A net for tables: numbers cut into bins, categories as 0/1 columns, and linear layers.

Linear layers on standardised numbers find it hard to fit functions that jump or bend, which trees fit at once. A number is
therefore also given as a piecewise linear code (Gorishniy et al., On Embeddings for Numerical Features in Tabular Deep
Learning, NeurIPS 2022, section 3.2): for each bin, how much of it lies below the number, from 0 to 1. Then one linear layer is
any function that is linear within bins.

Differs from the paper:

- A value that fills a bin alone is an edge, and the other edges are quantiles of the rest (``bin_edges``).
- The standardised number stays an input beside its code. What is missing is 0 in both, which no number is.
- The number of bins is bounded for all numbers together.
- The code goes into the first hidden layer, not through a layer of its own for each column.
"""

from typing import Annotated, ClassVar, Self, final

import torch
from pydantic import Field
from torch import Tensor, nn

from umix.errors import UserError
from umix.models.model import Encoder
from umix.models.net import Net, NetSettings

_FARTHEST = 10.0  # deviations
_MOST_BINS = 192  # of all numbers together, so that the first layer stays small where a table has many of them


@final
class TableEncoder(Encoder):
    """From codes and raw numbers, NaN where missing, to standardised numbers, their bins, and 0/1 columns.

    ``categories`` has the number of values of each column, 0 for a number. What is missing, or a code that is no place among the
    values, is 0 in all of its columns. With bins no number that is there looks like this: the mean lies above some of them.
    """

    origin: Tensor  # [width], the column of the table that each number comes from
    code: Tensor  # the code that each 0/1 column is 1 for
    center: (
        Tensor  # of standardised numbers and bins: the mean of their column, and what makes a number of the difference
    )
    slope: Tensor
    offset: Tensor

    def __init__(self, categories: tuple[int, ...], bins: int) -> None:
        super().__init__()
        self.bins = bins
        self.numbers = [column for column, size in enumerate(categories) if not size]
        in_bins = [column for column in self.numbers for _ in range(bins)]
        codes = [(column, value) for column, size in enumerate(categories) for value in range(size)]
        origin = [*self.numbers, *in_bins, *(column for column, _ in codes)]
        self.register_buffer("origin", torch.tensor(origin, dtype=torch.int64), persistent=False)
        self.register_buffer("code", torch.tensor([float(value) for _, value in codes]), persistent=False)
        for name in ("center", "slope", "offset"):
            self.register_buffer(name, torch.zeros(len(self.numbers) + len(in_bins)))

    @property
    def width(self) -> int:
        """How many numbers a row becomes."""
        return len(self.origin)

    def fit(self, x: Tensor) -> None:
        n = len(self.numbers)
        for buffer in (self.center, self.slope, self.offset):
            buffer.zero_()
        for place, column in enumerate(self.numbers):
            values = x[:, column].double()
            values = values[values.isfinite()]
            if not len(values) or values.min() == values.max():
                continue
            first = n + place * self.bins
            mean = self.center[place] = values.mean().float()
            self.center[first : first + self.bins] = mean
            low, high = _pieces(values - mean, self.bins)
            places = torch.tensor([place, *range(first, first + len(low) - 1)])
            self.slope[places] = (1 / (high - low)).float()
            self.offset[places] = (-low / (high - low)).float()

    def forward(self, x: Tensor) -> Tensor:
        """The numbers of a batch, float32 [batch, width]: standardised numbers, their bins, 0/1 columns.

        All is done in place after one copy, because on a small net every operation counts.
        """
        z, n, n_scaled = x.index_select(1, self.origin), len(self.numbers), len(self.slope)
        scaled = z[:, :n_scaled]
        # The difference of large numbers that are near each other is exact; a product first would lose its digits.
        scaled.sub_(self.center).mul_(self.slope).add_(self.offset)
        scaled[:, :n].clamp_(-_FARTHEST, _FARTHEST)
        scaled[:, n:].clamp_(0, 1)
        scaled.nan_to_num_(0.0)
        z[:, n_scaled:].eq_(self.code)
        return z


def _pieces(values: Tensor, bins: int) -> tuple[Tensor, Tensor]:
    """What becomes 0 and what becomes 1, [1 + bins or fewer] each: mean and a deviation above it, then both ends of every bin."""
    mean, deviation = values.mean(dim=0, keepdim=True), values.std(correction=0)
    edges = bin_edges(values, bins) if bins else values[:0]
    return torch.cat([mean, edges[:-1]]), torch.cat([mean + deviation, edges[1:]])


@final
class Tabular(NetSettings):
    """Linear layers with ReLU on the columns of a table: numbers standardised and in bins, categories as 0/1 columns."""

    name: ClassVar[str] = "tabular"
    sized_by_options: ClassVar[bool] = True
    supports_categorical: ClassVar[bool] = True
    from_data: ClassVar[tuple[str, ...]] = ("categories",)

    hidden: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        (64, 64), max_length=1000, description="widths of the hidden layers; empty for a linear classifier"
    )
    dropout: float = Field(0.0, ge=0, lt=1, description="share of hidden units dropped in training")
    bins: int = Field(16, ge=0, description="most bins of a number, fewer where there are many; 0: standardised only")
    categories: tuple[int, ...] = Field(
        (), description="values of each column that holds codes, 0 for numbers; the data say it"
    )

    def with_categories(self, categories: tuple[int, ...]) -> Self:
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


def bin_edges(values: Tensor, bins: int) -> Tensor:
    """At most ``bins`` + 1 rising edges, float64, from the lowest to the highest of the finite ``values`` [n].

    They are quantiles, except that a value which fills a bin alone is an edge of its own and does not count for the others.
    Otherwise a column such as a capital gain, which is 0 for nearly everybody, would get one bin for all gains there are.

    >>> bin_edges(torch.tensor([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0]), 2)
    tensor([0., 1., 3.], dtype=torch.float64)
    """
    values = values.double()
    distinct: Tensor
    counts: Tensor
    distinct, counts = torch.unique(values, return_counts=True)
    if len(distinct) <= bins + 1:
        return distinct
    heavy = counts * bins > len(values)
    rest = distinct[~heavy].repeat_interleave(counts[~heavy])
    n_edges = max(2, bins + 1 - int(heavy.sum()))
    places = torch.linspace(0, len(rest) - 1, n_edges, dtype=torch.float64)
    quantiles = rest[places.round().long()]
    edges: Tensor = torch.cat([distinct[heavy], quantiles]).unique()
    return edges
