"""From a split and an order to batches: tensors are sliced, lazy inputs go through a DataLoader."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from umix.data.batch import Batch
from umix.data.task import Split


def batches(
    split: Split, order: Tensor, *, batch_size: int, first_step: int = 0, groups: bool = False, workers: int = 0
) -> Iterator[Batch]:
    """The examples ``order`` [m] of ``split`` in batches; groups and attributes are there only where ``groups`` is asked for."""
    group, attribute = (split.group, split.attribute) if groups else (None, None)
    for step, (x, index) in enumerate(_inputs(split, order.to(split.y.device), batch_size, workers), start=first_step):
        y = split.y.index_select(0, index)
        if group is None:
            yield Batch(x, y, index, step)
        else:
            yield Batch(x, y, index, step, group[index], None if attribute is None else attribute[index])


def n_batches(n: int, batch_size: int) -> int:
    """How many batches ``n`` examples make; the last one may be smaller, none is dropped."""
    return -(-n // batch_size)


def _inputs(split: Split, order: Tensor, batch_size: int, workers: int) -> Iterator[tuple[Tensor, Tensor]]:
    parts = order.split(batch_size) if len(order) else ()  # torch splits nothing into one empty part
    if isinstance(split.x, Tensor):
        for index in parts:
            yield split.x.index_select(0, index), index
        return
    device = split.y.device
    loader: DataLoader[Tensor] = DataLoader(
        split.x,  # type: ignore[arg-type]
        batch_sampler=[part.tolist() for part in parts],
        num_workers=workers,
        pin_memory=device.type == "cuda",
        generator=torch.Generator(),  # else the DataLoader draws its workers' seed from the global generator
    )
    for x, index in zip(loader, parts, strict=True):
        yield x.to(device, non_blocking=True), index
