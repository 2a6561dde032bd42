"""Threads that read the examples of planned batches and change them into inputs of nets, each example by itself.

Threads, not processes: image decoders and torch release the interpreter lock, so no data have to be copied between processes, and
no processes have to be started every epoch or seeded. Each thread computes alone. Threads of torch beside it would wait for each
other actively, which takes the cores from those that read.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache

import torch
from threadpoolctl import ThreadpoolController
from torch import Tensor

from umix.data.batch_memory import empty_batch
from umix.data.batch_plan import BatchPlan
from umix.data.lazy import Lazy, Sliced
from umix.data.pillow_memory import kept_memory

_MOST = 16  # threads that change stored examples; more would wait for the interpreter lock
_TOGETHER = 4  # examples that a thread reads for one call at most: a call for each costs a few percent

_Begun = tuple[Tensor, list[Future[None]]]  # memory of a batch, and the calls that write it


def planned_batches(
    x: Lazy, parts: Sequence[Tensor], plan: Callable[[tuple[int, ...]], BatchPlan], workers: int | None = None
) -> Iterator[Tensor]:
    """The inputs made of each part of the rows of ``x``, on the CPU; they do not depend on the number of ``workers``.

    Examples that have to be read are read and changed by a thread per core, one batch ahead. Those that are only sliced are
    changed by as many threads as torch has, while the caller waits: the net needs the same cores. ``workers=0`` starts no thread.
    """
    if not parts:
        return
    sliced = isinstance(x, Sliced)
    if workers is None:
        workers = min(torch.get_num_threads(), _MOST) if sliced else os.cpu_count() or 1
    if workers == 0 or (sliced and workers == 1):
        shape = x[int(parts[0][0])].shape
        for rows in parts:
            yield _made(x, rows, plan((len(rows), *shape)))
        return
    begun, pool = deque[_Begun](), ThreadPoolExecutor(workers, initializer=_compute_alone)
    with kept_memory():
        try:
            shape = pool.submit(x.__getitem__, int(parts[0][0])).result().shape
            for rows in parts:
                begun.append(_begin(pool, workers, x, rows, plan((len(rows), *shape))))
                if sliced or len(begun) > 1:
                    yield _finished(begun)
            while begun:
                yield _finished(begun)
        finally:
            pool.shutdown(cancel_futures=True)  # also when an example cannot be read, or the caller stops early


def _made(x: Lazy, rows: Tensor, plan: BatchPlan) -> Tensor:
    """A batch, made by this thread."""
    out = empty_batch(plan.shape, torch.device("cpu"))
    for some in _slices(len(rows), plan.at_once):
        _write(x, rows, plan, some, out)
    return out


def _begin(pool: ThreadPoolExecutor, workers: int, x: Lazy, rows: Tensor, plan: BatchPlan) -> _Begun:
    out, n = empty_batch(plan.shape, torch.device("cpu")), len(rows)
    at_once = plan.at_once if isinstance(x, Sliced) else max(1, min(_TOGETHER, n // (4 * workers)))
    return out, [pool.submit(_write, x, rows, plan, some, out) for some in _slices(n, at_once)]


def _finished(begun: deque[_Begun]) -> Tensor:
    """The batch that was begun first, when all of it is written; the first example that cannot be read raises."""
    out, calls = begun.popleft()
    for call in calls:
        call.result()
    return out


def _slices(n: int, at_once: int) -> list[slice]:
    return [slice(begin, min(begin + at_once, n)) for begin in range(0, n, at_once)]


@torch.inference_mode()  # which each thread has for itself, and in which a small batch's memory may have been made
def _write(x: Lazy, rows: Tensor, plan: BatchPlan, some: slice, out: Tensor) -> None:
    """Read or slice ``some`` of the examples ``rows``, and write what becomes of them to their place in the batch ``out``."""
    if isinstance(x, Sliced):
        plan.write(x.take(rows[some]), some, out[some])
        return
    for place, row in enumerate(rows[some].tolist(), start=some.start):
        one = slice(place, place + 1)
        plan.write(x[row][None], one, out[one])


def _compute_alone() -> None:
    """Let torch use one thread where it is called by this one."""
    torch.get_num_threads()  # torch sets the number when a thread first asks for it
    _openmp().limit(limits=1)  # counted for each thread by itself, unlike torch.set_num_threads


@cache
def _openmp() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="openmp")
