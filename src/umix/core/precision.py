"""Sums over a batch need more than half precision: bfloat16 counts to 256, float16 to 2,048 and no sum exceeds 65,504."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

import torch
from torch import Tensor

P = ParamSpec("P")
T = TypeVar("T")


def wide(x: Tensor) -> Tensor:
    """``x`` in single precision if it is in half, else ``x`` itself; gradients come back in the number format of ``x``.

    >>> wide(torch.ones(1, dtype=torch.bfloat16)).dtype, wide(torch.ones(1, dtype=torch.float64)).dtype
    (torch.float32, torch.float64)
    """
    return x if x.dtype in (torch.float32, torch.float64) else x.float()


def without_autocast(function: Callable[Concatenate[Tensor, P], T]) -> Callable[Concatenate[Tensor, P], T]:
    """``function``, which computes in the number format of its tensors even where autocast would round matrix products."""

    @wraps(function)
    def run(x: Tensor, /, *args: P.args, **kwargs: P.kwargs) -> T:
        kind = x.device.type
        if not (torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)):
            return function(x, *args, **kwargs)
        with torch.autocast(kind, enabled=False):
            return function(x, *args, **kwargs)

    return run
