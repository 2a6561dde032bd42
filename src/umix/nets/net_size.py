"""The memory that a net needs, from its options alone: nothing is allocated."""

import torch
from torch import Tensor, nn

from umix.errors import Setting
from umix.limits import require_memory
from umix.nets.net import NetSettings

_COPIES = 3  # of every parameter while it is trained: itself, its gradient, and at least one number of the optimiser


def require_fitting_net(settings: NetSettings, example: Tensor, n_classes: int) -> None:
    """Raise UserError if the net of these settings is larger than all memory.

    Only nets whose options say how large they are can be asked; others are as large as their files or their code make them.
    """
    if not settings.sized_by_options:
        return
    with torch.device("meta"):  # shapes without numbers
        net = settings.build(example.to("meta"), n_classes)
    require_memory(
        _COPIES * size_of(net),
        f"Training the net {settings.title} for {n_classes} classes and examples of shape {list(example.shape)} takes",
        "make it smaller with ",
        Setting("net"),
        " or its options",
    )


def size_of(module: nn.Module) -> int:
    """Bytes of the parameters and buffers of ``module``."""
    return sum(tensor.numel() * tensor.element_size() for tensor in (*module.parameters(), *module.buffers()))
