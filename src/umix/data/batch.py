"""A batch of examples, as objectives get it."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor


@final
@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Some examples and their row numbers in the split; ``group`` is None unless the objective declares that it needs it."""

    x: Tensor
    y: Tensor  # [batch] int64
    index: Tensor  # [batch] int64, rows of the split
    step: int = 0  # gradient steps taken before this batch, over the whole fit
    group: Tensor | None = None  # [batch] int64
    rows: NDArray[np.int64] | None = None  # ``index`` on the host, which can be read without waiting for the device
    weight: Tensor | None = None  # [batch], what each example counts for; None: all count the same

    def known_group(self) -> Tensor:
        """The groups, [batch]; the objective must have declared that it needs them."""
        if self.group is None:
            raise ValueError("This batch carries no groups: the objective must set needs_groups to see them.")
        return self.group

    def host_rows(self) -> NDArray[np.int64]:
        """``index`` as an array on the host."""
        return self.index.cpu().numpy() if self.rows is None else self.rows
