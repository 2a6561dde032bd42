"""What an objective sees of the data."""

from dataclasses import dataclass
from typing import final

from torch import Tensor


@final
@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Some examples and their places in the split; groups are None unless the objective declares that it needs them."""

    x: Tensor
    y: Tensor  # [batch] int64
    index: Tensor  # [batch] int64, rows of the split
    step: int = 0  # gradient steps taken before this batch, over the whole fit
    group: Tensor | None = None  # [batch] int64
    attribute: Tensor | None = None  # [batch] int64, where the groups are label×attribute cells

    def known_group(self) -> Tensor:
        """The groups, [batch]; the objective must have declared that it needs them."""
        if self.group is None:
            raise ValueError("This batch carries no groups: the objective must set needs_groups to see them.")
        return self.group

    def known_attribute(self) -> Tensor:
        """The attributes, [batch]; the objective must need groups and the task know attributes."""
        if self.attribute is None:
            raise ValueError("This batch carries no attributes: its groups are unknown or not label×attribute cells.")
        return self.attribute
