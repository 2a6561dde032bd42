"""The threads of estimators, and of torch beside them: both count theirs in one place, so one changes the other's."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits

from umix.data.task import Split

_FEW = 2**18  # rows × columns that one thread fits as fast as several


def threads_for(train: Split) -> int:
    """How many threads an estimator is fitted with: as many as torch has, and one where there are few rows.

    The threads of a boosted tree wait for each other at every split, actively: on few rows they only slow each other down, and
    where another process wants their core, by a factor of ten and more.
    """
    return 1 if len(train) * max(1, train.example.numel()) < _FEW else torch.get_num_threads()


@contextmanager
def estimator_threads(count: int) -> Iterator[None]:
    """Inside the block estimators use so many threads."""
    before = torch.get_num_threads()
    try:
        with threadpool_limits(count, user_api="openmp"):
            yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Inside the block torch uses one thread: sums of losses must not depend on their number."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
