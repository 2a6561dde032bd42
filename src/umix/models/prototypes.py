"""A head of prototypes in place of a last layer: members with a prototype of every class, whose probabilities are averaged."""

import math
from collections.abc import Mapping
from typing import final

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from umix.models.model import Model

_NAME = "head.prototypes"  # the weight by which a stored net is known to have such a head


def prototype_logits(z: Tensor, prototypes: Tensor, scale: Tensor) -> Tensor:
    """−|scale|·‖z/‖z‖ − p/‖p‖‖ of every example and prototype, [batch, ..., classes] (Macêdo et al. 2021, IsoMax+).

    ``z`` [batch, width], ``prototypes`` [..., classes, width], ``scale`` [...].

    >>> prototype_logits(torch.tensor([[2.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 3.0]]), torch.tensor(1.0)).round(decimals=3)
    tensor([[-0.0000, -1.4140]])
    """
    cosine = torch.einsum("bw,...cw->b...c", normalize(z, dim=-1), normalize(prototypes, dim=-1))
    squared = (2 - 2 * cosine).clamp_min(torch.finfo(z.dtype).tiny)  # a root has no slope at 0
    return -scale.abs().unsqueeze(-1) * squared.sqrt()


@final
class PrototypeHead(nn.Module):
    """From features [batch, width] to log p, [batch, classes], where p is the mean of the members' probabilities.

    Features are standardised by ``mean`` and ``deviation`` [width] first.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, members: int, n_classes: int, width: int) -> None:
        nn.Module.__init__(self)
        self.prototypes = nn.Parameter(torch.zeros(members, n_classes, width))
        self.scale = nn.Parameter(torch.ones(members))
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("deviation", torch.ones(width))

    def forward(self, z: Tensor) -> Tensor:
        logits = prototype_logits((z - self.mean) / self.deviation, self.prototypes, self.scale)
        mean: Tensor = logits.log_softmax(-1).logsumexp(1) - math.log(len(self.scale))
        return mean


def use_prototypes(net: Model, head: PrototypeHead) -> None:
    """Put ``head`` in place of the last layer of ``net``."""
    net.head = head
    net.is_linear = False


def match_head(net: Model, weights: Mapping[str, Tensor]) -> None:
    """Give ``net`` a head of prototypes if the ``weights`` that it shall load are of a net that has one."""
    if _NAME in weights:
        use_prototypes(net, PrototypeHead(*weights[_NAME].shape))
