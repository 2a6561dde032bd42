"""Columns of numbers and codes with gaps, as the numbers that a linear model takes."""

from collections.abc import Sequence

import torch
from torch import Tensor


def one_hot_columns(x: Tensor, categories: Sequence[int]) -> Tensor:
    """Columns without gaps, float32 [n, width], from ``x`` [n, columns] whose gaps are NaN.

    Column j holds codes 0 … categories[j]-1, and becomes as many columns of 0 and 1, all 0 for a gap; or it holds numbers, if
    categories[j] is 0, and is followed by a column that marks its gaps, which become 0.

    >>> one_hot_columns(torch.tensor([[2.5, 1.0], [float("nan"), float("nan")]]), [0, 2]).tolist()
    [[2.5, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0]]
    """
    parts: list[Tensor] = []
    for place, count in enumerate(categories):
        column = x[:, place]
        gap = column.isnan()
        if count:
            parts.append(torch.nn.functional.one_hot(column.nan_to_num(count).long(), count + 1)[:, :count].float())
        else:
            parts.append(torch.stack([column.nan_to_num(0.0), gap.float()], dim=1))
    return torch.cat(parts, dim=1) if parts else x.float()
