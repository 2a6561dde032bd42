"""Whether weights that were read from a file are those of a net."""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor, nn

from umix.array_layout import Array, misfit
from umix.nets.estimators.estimator import Fitted


def weights_misfit(net: nn.Module, weights: Mapping[str, Tensor], *, without: tuple[str, ...] = ()) -> str:
    """Why ``weights`` cannot be loaded into ``net``, in words: names, shapes and types; empty if they can be.

    Weights of the net whose names begin with ``without`` are not among them.
    """
    layout = layout_of({name: one for name, one in net.state_dict().items() if not name.startswith(without)})
    for place, part in net.named_modules():
        if isinstance(part, Fitted):
            layout |= {f"{place}.{name}": array for name, array in part.layout.items()}
    if extra := next((name for name in weights if name not in layout), None):
        return f"the net has no {extra!r}"
    return misfit(weights, layout)


def layout_of(tensors: Mapping[str, Tensor]) -> dict[str, Array]:
    """The layout of a file that holds tensors like these."""
    return {name: Array(_type(tensor), tuple(tensor.shape)) for name, tensor in tensors.items()}


def _type(tensor: Tensor) -> Literal["whole", "real", "bool"]:
    if tensor.dtype.is_floating_point:
        return "real"
    return "bool" if tensor.dtype == torch.bool else "whole"
