"""What an objective sees of the data."""

from dataclasses import dataclass
from typing import final

from torch import Tensor


@final
@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Some examples and their places in the split; ``group`` is None unless the objective declares that it needs it."""

    x: Tensor
    y: Tensor  # [batch] int64
    index: Tensor  # [batch] int64, rows of the split
    group: Tensor | None = None  # [batch] int64
