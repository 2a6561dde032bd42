"""From a split and an order to batches: tensors and mapped files are sliced, lazy inputs are read ahead by threads."""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import numpy as np
import torch
from torch import Tensor

from umix.data.batch import Batch
from umix.data.batch_plan import BatchPlan, PlannedAugment, PlannedTransform
from umix.data.batch_threads import planned_batches
from umix.data.lazy import Lazy, Sliced
from umix.data.pillow_memory import kept_memory
from umix.data.task import Split, Transform

_AHEAD = 2  # batches that are read while another is trained on


def batches(
    split: Split,
    order: Tensor,
    *,
    batch_size: int,
    first_step: int = 0,
    groups: bool = False,
    workers: int | None = None,
    augment: np.random.Generator | None = None,
) -> Iterator[Batch]:
    """The examples ``order`` [m] of ``split`` in batches; ``group`` is filled only with ``groups=True``.

    With a generator in ``augment`` these are training batches: inputs are augmented with draws from it where the split says how.
    Lazy inputs are read by so many ``workers``, by default one per core; what comes back does not depend on their number.
    """
    group, device = split.group if groups else None, split.y.device
    # The whole order is moved at once, because a call for every batch would be a noticeable part of a small net's step.
    rows, parts, indices = order.numpy(), _parts(order, batch_size), _parts(order.to(device), batch_size)
    inputs = _inputs(split, parts, indices, workers, augment)
    for number, (index, x) in enumerate(zip(indices, inputs, strict=True)):
        known = None if group is None else group.index_select(0, index)
        weight = None if split.weight is None else split.weight.index_select(0, index)
        begin = number * batch_size
        visited = rows[begin : begin + batch_size]
        yield Batch(x, split.y.index_select(0, index), index, first_step + number, known, visited, weight)


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


def _plan(split: Split, augment: np.random.Generator | None) -> Callable[[tuple[int, ...]], BatchPlan] | None:
    """How to plan the inputs of a batch that is read or sliced on the host; None where they cannot be planned."""
    if isinstance(split.x, Tensor) or split.y.device.type != "cpu":
        return None
    if augment is not None and split.augment is not None:
        draw = split.augment
        return partial(draw.plan, rng=augment) if isinstance(draw, PlannedAugment) else None
    return split.transform.plan if isinstance(split.transform, PlannedTransform) else None


def _inputs(
    split: Split,
    parts: Sequence[Tensor],
    indices: Sequence[Tensor],
    workers: int | None,
    augment: np.random.Generator | None,
) -> Iterator[Tensor]:
    """The net's inputs of each part of the order, whose rows ``indices`` has on the device."""
    plan, change = _plan(split, augment), _change(split, augment)
    if plan is not None and not isinstance(split.x, Tensor):
        yield from planned_batches(split.x, parts, plan, workers)
        return
    for x in _stored(split, parts, indices, workers):
        yield x if change is None else change(x)


def _stored(split: Split, parts: Sequence[Tensor], indices: Sequence[Tensor], workers: int | None) -> Iterator[Tensor]:
    """The stored inputs of each part of the order on the device."""
    device = split.y.device
    if isinstance(split.x, Tensor):
        for index in indices:
            yield split.x.index_select(0, index)
        return
    if isinstance(split.x, Sliced):
        for rows in parts:
            yield split.x.take(rows).to(device, non_blocking=True)
        return
    for x in _read(split.x, parts, (os.cpu_count() or 1) if workers is None else workers):
        yield x.to(device, non_blocking=True)


def _read(x: Lazy, parts: Sequence[Tensor], workers: int) -> Iterator[Tensor]:
    """The rows of each part of lazy inputs, stacked; threads read the next parts meanwhile."""
    if not workers:
        for rows in parts:
            yield torch.stack([x[row] for row in rows.tolist()])
        return
    pool, ahead = ThreadPoolExecutor(workers), deque[list[Future[Tensor]]]()
    with kept_memory():
        try:
            for rows in parts:
                ahead.append([pool.submit(x.__getitem__, row) for row in rows.tolist()])
                if len(ahead) > _AHEAD:
                    yield torch.stack([read.result() for read in ahead.popleft()])
            while ahead:
                yield torch.stack([read.result() for read in ahead.popleft()])
        finally:
            pool.shutdown(cancel_futures=True)  # also when an example cannot be read, or the caller stops early
