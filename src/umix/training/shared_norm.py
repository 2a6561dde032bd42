"""Batch normalisation with the statistics of the whole batch, while each process has only some of its rows.

On GPUs torch's own SyncBatchNorm is used, which works on GPUs only.
"""

from typing import Any, final

import torch
from torch import Tensor, distributed, nn
from torch.nn.modules.batchnorm import _BatchNorm


def share_norms(net: nn.Module) -> None:
    """Replace every batch normalisation in ``net`` by one over all processes, with the same parameters and buffers."""
    for name, part in net.named_children():
        if not isinstance(part, _BatchNorm) or isinstance(part, SharedNorm | nn.SyncBatchNorm):
            share_norms(part)
        elif next(iter(part.state_dict().values()), torch.zeros(0)).device.type == "cuda":
            setattr(net, name, nn.SyncBatchNorm.convert_sync_batchnorm(part))
        else:
            setattr(net, name, SharedNorm(part))


@final
class SharedNorm(_BatchNorm):
    """``norm``, but in training with the mean and variance over the rows of all processes."""

    def __init__(self, norm: _BatchNorm) -> None:
        _BatchNorm.__init__(
            self, norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats, device="meta"
        )
        self._parameters.update(norm._parameters)
        self._buffers.update(norm._buffers)
        self.training = norm.training

    def _check_input_dim(self, input: Tensor) -> None:  # any number of dimensions is allowed
        return

    def forward(self, input: Tensor) -> Tensor:
        if (not self.training and self.running_mean is not None) or not distributed.is_initialized():
            normalised: Tensor = _BatchNorm.forward(self, input)
            return normalised
        x, axes = input.float(), [axis for axis in range(input.dim()) if axis != 1]
        rows = x.new_full((1,), x.numel() / x.shape[1])
        n, total = _summed(torch.cat([rows, x.sum(axes)])).tensor_split([1])
        mean = total / n
        centred = x - self._broadcast(mean, x)
        var = _summed(centred.square().sum(axes)) / n
        if self.training and self.running_mean is not None and self.running_var is not None:
            self._remember(mean.detach(), (var * n / (n - 1).clamp(min=1)).detach())
        y = centred * self._broadcast((var + self.eps).rsqrt(), x)
        if self.affine:
            y = y * self._broadcast(self.weight, x) + self._broadcast(self.bias, x)
        return y.to(input.dtype)

    def _remember(self, mean: Tensor, var: Tensor) -> None:
        if self.num_batches_tracked is None or self.running_mean is None or self.running_var is None:
            return
        self.num_batches_tracked.add_(1)
        share = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean), share)
        self.running_var.lerp_(var.to(self.running_var), share)

    @staticmethod
    def _broadcast(value: Tensor, like: Tensor) -> Tensor:
        return value.view(1, -1, *[1] * (like.dim() - 2))


def _summed(value: Tensor) -> Tensor:
    """The sum of ``value`` over all processes; its gradient is summed over all processes, too."""
    total: Tensor = _Sum.apply(value)  # type: ignore[no-untyped-call]
    return total


@final
class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        total = value.clone()
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        total = grads[0].clone()
        distributed.all_reduce(total)
        return total
