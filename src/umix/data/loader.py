"""From a split and an order to batches: tensors and mapped files are sliced, lazy inputs go through a DataLoader."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from umix.data.batch import Batch
from umix.data.lazy import Mapped
from umix.data.task import Split, Transform


def batches(
    split: Split,
    order: Tensor,
    *,
    batch_size: int,
    first_step: int = 0,
    groups: bool = False,
    workers: int = 0,
    augment: np.random.Generator | None = None,
) -> Iterator[Batch]:
    """The examples ``order`` [m] of ``split`` in batches; ``group`` is filled only where ``groups`` is asked for.

    With a generator in ``augment`` these are training batches: inputs are augmented with draws from it where the split says how.
    """
    group, device, change = split.group if groups else None, split.y.device, _change(split, augment)
    parts = order.split(batch_size) if len(order) else ()  # torch splits nothing into one empty part
    for step, (rows, x) in enumerate(zip(parts, _inputs(split, parts, workers), strict=True), start=first_step):
        index = rows.to(device, non_blocking=True)
        if change is not None:
            x = change(x)
        known = None if group is None else group.index_select(0, index)
        weight = None if split.weight is None else split.weight.index_select(0, index)
        yield Batch(x, split.y.index_select(0, index), index, step, known, rows.numpy(), weight)


def n_batches(n: int, batch_size: int) -> int:
    """How many batches ``n`` examples make; the last one may be smaller, none is dropped."""
    return -(-n // batch_size)


def _change(split: Split, augment: np.random.Generator | None) -> Transform | None:
    """What happens to the stored inputs of a batch before the net sees them; None where nothing does."""
    draw = split.augment
    if augment is None or draw is None:
        return split.transform
    return lambda x: draw(x, augment)


def _inputs(split: Split, parts: Sequence[Tensor], workers: int) -> Iterator[Tensor]:
    device = split.y.device
    if isinstance(split.x, Tensor):
        for rows in parts:
            yield split.x.index_select(0, rows.to(device, non_blocking=True))
        return
    if isinstance(split.x, Mapped):
        for rows in parts:
            yield split.x.take(rows).to(device, non_blocking=True)
        return
    loader: DataLoader[Tensor] = DataLoader(
        split.x,  # type: ignore[arg-type]
        batch_sampler=[rows.tolist() for rows in parts],
        num_workers=workers,
        pin_memory=device.type == "cuda",
        generator=torch.Generator(),  # else the DataLoader draws its workers' seed from the global generator
    )
    for x in loader:
        yield x.to(device, non_blocking=True)
