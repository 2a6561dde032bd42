"""From a split and an order to batches: tensors are sliced, other inputs are read by torch's DataLoader.

The DataLoader starts no processes: they would have to be started in every epoch, and scripts without
``if __name__ == "__main__":`` cannot start any. Inputs that take long to read are read by threads (``Images``).
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from umix.data.batch import Batch
from umix.data.inputs import Inputs
from umix.data.task import Split, Transform


def batches(
    split: Split,
    order: Tensor,
    *,
    batch_size: int,
    first_step: int = 0,
    groups: bool = False,
    augment: np.random.Generator | None = None,
) -> Iterator[Batch]:
    """The examples ``order`` [m] of ``split`` in batches; ``group`` is filled only with ``groups=True``.

    With a generator in ``augment`` these are training batches: inputs are augmented with draws from it where the split says how.
    """
    group, device = split.group if groups else None, split.y.device
    # The whole order is moved at once, because a call for every batch would be a noticeable part of a small net's step.
    rows, parts, indices = order.numpy(), _parts(order, batch_size), _parts(order.to(device), batch_size)
    stored = _sliced(split.x, indices) if isinstance(split.x, Tensor) else _read(split.x, parts, device)
    change = _change(split, augment)
    for number, (index, x) in enumerate(zip(indices, stored, strict=True)):
        groups_of_rows = None if group is None else group.index_select(0, index)
        weight = None if split.weight is None else split.weight.index_select(0, index)
        begin = number * batch_size
        visited = rows[begin : begin + batch_size]
        inputs = x if change is None else change(x)
        yield Batch(inputs, split.y.index_select(0, index), index, first_step + number, groups_of_rows, visited, weight)


def n_batches(n: int, batch_size: int) -> int:
    """How many batches ``n`` examples make; the last one may be smaller, none is dropped."""
    return -(-n // batch_size)


def _change(split: Split, augment: np.random.Generator | None) -> Transform | None:
    """The transform of a batch's stored inputs into the net's inputs; None where they are the same."""
    draw = split.augment
    if augment is None or draw is None:
        return split.transform
    return lambda x: draw(x, augment)


def _parts(order: Tensor, batch_size: int) -> Sequence[Tensor]:
    return order.split(batch_size) if len(order) else ()  # torch would split an empty order into one empty part


def _sliced(x: Tensor, indices: Sequence[Tensor]) -> Iterator[Tensor]:
    for index in indices:
        yield x.index_select(0, index)


def _read(x: Inputs, parts: Sequence[Tensor], device: torch.device) -> Iterator[Tensor]:
    loader = DataLoader(
        x,
        batch_sampler=[rows.tolist() for rows in parts],
        collate_fn=x.collate,
        generator=torch.Generator(),  # from which the loader draws a seed; by default that would be torch's global one
    )
    for batch in loader:
        yield batch.to(device, non_blocking=True)
