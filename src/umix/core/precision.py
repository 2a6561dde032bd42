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


def widened(function: Callable[Concatenate[Tensor, P], T]) -> Callable[Concatenate[Tensor, P], T]:
    """``function`` of its first argument made ``wide``; where that is in half precision, autocast rounds nothing in between.

    Autocast is left alone for single precision, because asking for it takes a noticeable part of a small risk.
    """

    @wraps(function)
    def run(x: Tensor, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if x.dtype in (torch.float32, torch.float64):
            return function(x, *args, **kwargs)
        with torch.autocast(x.device.type, enabled=False):
            return function(x.float(), *args, **kwargs)

    return run
