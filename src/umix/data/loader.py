"""From a split and an order to batches: tensors are sliced, lazy inputs go through a DataLoader."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from umix.data.batch import Batch
from umix.data.task import Split


def batches(
    split: Split, order: Tensor, *, batch_size: int, first_step: int = 0, groups: bool = False, workers: int = 0
) -> Iterator[Batch]:
    """The examples ``order`` [m] of ``split`` in batches; ``group`` is filled only where ``groups`` is asked for."""
    group, device = split.group if groups else None, split.y.device
    parts = order.split(batch_size) if len(order) else ()  # torch splits nothing into one empty part
    for step, (rows, x) in enumerate(zip(parts, _inputs(split, parts, workers), strict=True), start=first_step):
        index = rows.to(device, non_blocking=True)
        known = None if group is None else group.index_select(0, index)
        yield Batch(x, split.y.index_select(0, index), index, step, known, rows.numpy())


def n_batches(n: int, batch_size: int) -> int:
    """How many batches ``n`` examples make; the last one may be smaller, none is dropped."""
    return -(-n // batch_size)


def _inputs(split: Split, parts: Sequence[Tensor], workers: int) -> Iterator[Tensor]:
    device = split.y.device
    if isinstance(split.x, Tensor):
        for rows in parts:
            yield split.x.index_select(0, rows.to(device, non_blocking=True))
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
