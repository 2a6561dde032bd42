"""Examples as vectors of numbers whose distances mean something: to estimate groups, and to find neighbours.

Examples that are vectors of numbers represent themselves. Others (images, token ids) are represented by the features of an ERM net,
which is trained first and shared with other runs.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from umix.data.task import Split
from umix.training.context import Context
from umix.training.stage import ErmStage

_FARTHEST = 10.0  # deviations at which numbers of a table are cut


def example_vectors(context: Context, splits: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    """What represents the examples of these ``splits``, [n, width] each, standardised with the training split's statistics.

    "train" must be among them.
    """
    categories = context.task.categories
    vectors = {name: x for name in splits if (x := _vectors(context.task.splits[name])) is not None}
    if categories:
        middle = vectors["train"].nanmean(0).nan_to_num(0.0)
        offset = middle.where(torch.tensor(categories) == 0, 0.0)  # a gap becomes the mean
        vectors = {name: one_hot_columns(x - offset, categories) for name, x in vectors.items()}
    if len(vectors) < len(splits):
        net = context.reference(ErmStage("reference", context.settings.epochs))
        vectors = {name: context.features(net, name).float().cpu().flatten(1) for name in splits}
    mean, scale = vectors["train"].mean(0), vectors["train"].std(0, correction=0)
    scale = scale.where(scale > 0, 1.0)
    if categories:  # numbers are as they are in the table
        return {name: ((x - mean) / scale).clamp(-_FARTHEST, _FARTHEST).numpy() for name, x in vectors.items()}
    return {name: ((x - mean) / scale).numpy() for name, x in vectors.items()}


def has_vectors(split: Split) -> bool:
    """Whether the examples of ``split`` are vectors of numbers themselves, so that no net has to be trained."""
    return split.example.is_floating_point() and split.example.dim() == 1 and split.transform is None


def _vectors(split: Split) -> Tensor | None:
    """The inputs of ``split`` as float32 [n, width] on the host, if they are vectors of numbers."""
    if not has_vectors(split):
        return None
    if isinstance(split.x, Tensor):
        return split.x.float().cpu()
    return split.x.take(torch.arange(len(split))).float()


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
