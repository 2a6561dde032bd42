"""Copies of one net that are trained side by side, with their parameters stacked.

All of them see the same inputs, so their first layers are one matrix product, and the later ones one batched product. On small
nets most of the time of a step goes into starting operations: a stack starts them once for all of its nets.
"""

from collections.abc import Iterable
from typing import Literal, final

import torch
from torch import Tensor, nn

from umix.models.model import Model
from umix.models.net import Net

_LARGE = 5_000_000  # parameters


def can_stack(net: Model) -> bool:
    """Whether ``net`` is made only of layers that can be stacked: linear ones, with ReLU and dropout between them."""
    if not isinstance(net, Net):
        return False
    layers = _layers(net)
    return (
        net.companion is None
        and all(type(layer) in (nn.Linear, nn.ReLU, nn.Dropout, nn.Flatten) for layer in layers)
        and isinstance(net.head, nn.Linear)
        and all(
            layer.bias is not None and layer.weight.requires_grad for layer in layers if isinstance(layer, nn.Linear)
        )
        and [type(layer) for layer in layers[1:]].count(nn.Flatten) == 0
    )


def candidate_cost(net: Model) -> Literal["none", "small", "large"]:
    """What one more candidate like ``net`` costs: nothing where it is linear and stacked, much where it is trained alone."""
    if can_stack(net) and net.is_linear:
        return "none"
    if isinstance(net, Net) and not can_stack(net):
        return "large"
    return "large" if sum(parameter.numel() for parameter in net.parameters()) > _LARGE else "small"


def _layers(net: Net) -> list[nn.Module]:
    body = list(net.body) if isinstance(net.body, nn.Sequential) else [net.body]
    return [*body, net.head]


@final
class StackedLinear(nn.Module):
    """Linear layers side by side: ``weight`` [nets, out, in], ``bias`` [nets, out]."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.bias = nn.Parameter(bias)

    def forward(self, x: Tensor) -> Tensor:
        """Outputs [nets, batch, out] for inputs [batch, in] that all nets share, or [nets, batch, in] of their own."""
        members, out, _ = self.weight.shape
        if x.dim() == 2:  # one product for all nets
            flat = torch.addmm(self.bias.view(-1), x, self.weight.view(members * out, -1).t())
            return flat.view(len(x), members, out).transpose(0, 1)
        return torch.baddbmm(self.bias.unsqueeze(1), x, self.weight.transpose(1, 2))


def stack_of(net: Net, members: int) -> Net:
    """Stacked copies of a net that ``can_stack``, all with its weights; features and logits have the copy as their first axis.

    All parameters have it too, so a part of the stack is a slice of it. The encoder, which has no parameters, is shared.
    """
    *body, head = [_stacked(layer, members) for layer in _layers(net)]
    return Net(nn.Sequential(*body), head, encoder=net.encoder, is_linear=net.is_linear)


def is_stack(net: Model) -> bool:
    """Whether ``net`` is a stack of nets."""
    return isinstance(net.head, StackedLinear)


def _stacked(layer: nn.Module, members: int) -> nn.Module:
    if not isinstance(layer, nn.Linear):
        return layer
    weight, bias = layer.weight.detach(), layer.bias.detach()
    return StackedLinear(weight.expand(members, *weight.shape).clone(), bias.expand(members, *bias.shape).clone())


def clip_each(parameters: Iterable[nn.Parameter], longest: float) -> None:
    """Shorten the gradient of every net of a stack to at most ``longest``, as ``clip_grad_norm_`` does for one net."""
    grads = [parameter.grad for parameter in parameters if parameter.grad is not None]
    lengths = torch.stack([grad.flatten(1).square().sum(dim=1) for grad in grads]).sum(dim=0).sqrt()
    scale = (longest / (lengths + 1e-6)).clamp_max(1)
    for grad in grads:
        grad.mul_(scale.view(-1, *[1] * (grad.dim() - 1)))
