"""One fit in several processes: each computes its share of a batch's rows, and all see the outputs of the whole batch.

Every process draws the same batches from the same streams. What an objective is given as the net runs this process's rows only and
gathers the outputs of the others, so weights, pairs, sorted losses, group weights and penalties mean what they mean in one process,
by the same code: the risk is the same number everywhere. Its gradient reaches a process through its own rows only; DDP averages
over the processes, which is why ``_Gather`` passes it on times their number.
"""

from collections.abc import Callable, Iterator
from typing import Any, Self, final

import torch
from torch import Tensor, distributed, nn

from umix.nets.net import Net


def share(n: int, rank: int, world: int) -> slice:
    """The rows of a batch of ``n`` that belong to process ``rank``: a contiguous part, give or take one as large as the others.

    >>> [share(5, rank, 2) for rank in range(2)]
    [slice(0, 3, None), slice(3, 5, None)]
    """
    size, extra = divmod(n, world)
    begin = rank * size + min(rank, extra)
    return slice(begin, begin + size + (rank < extra))


def gathered(mine: Tensor, n: int) -> Tensor:
    """The outputs of all ``n`` rows, [n, ...], of which this process has computed its share ``mine``."""
    rank, world = distributed.get_rank(), distributed.get_world_size()
    if torch.is_grad_enabled() and mine.requires_grad:
        rows: Tensor = _Gather.apply(mine, n, rank, world)  # type: ignore[no-untyped-call]
        return rows
    return _all_rows(mine, n, world)


def _all_rows(mine: Tensor, n: int, world: int) -> Tensor:
    most = -(-n // world)
    padded = mine.new_zeros(most, *mine.shape[1:])  # processes exchange parts of one size
    padded[: len(mine)] = mine.detach()
    parts = [torch.empty_like(padded) for _ in range(world)]
    distributed.all_gather(parts, padded)
    sizes = (share(n, rank, world) for rank in range(world))
    return torch.cat([part[: rows.stop - rows.start] for part, rows in zip(parts, sizes, strict=True)])


@final
class _Gather(torch.autograd.Function):
    """All rows forwards, this process's rows backwards: what comes after it is the same in every process."""

    @staticmethod
    def forward(ctx: Any, mine: Tensor, n: int, rank: int, world: int) -> Tensor:
        ctx.rows, ctx.world = share(n, rank, world), world
        return _all_rows(mine, n, world)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        return grads[0][ctx.rows] * ctx.world, None, None, None


@final
class SharedNet:
    """``net`` as an objective or an evaluation sees it where several processes share it: rows of the batch in, all outputs back.

    ``runner`` is what runs the forward pass, the net itself or a wrapper of it. The head is small and its input known to all:
    called by itself, it runs on all rows everywhere.
    """

    def __init__(self, net: Net, runner: Net | None = None) -> None:
        self._net = net
        self._runner = net if runner is None else runner

    def __call__(self, x: Tensor) -> Tensor:
        """Logits, [batch, classes]."""
        return self._gathered(self._runner, x)

    def features(self, x: Tensor) -> Tensor:
        """Pooled features, [batch, width]."""
        return self._gathered(self._runner.features, x)

    @staticmethod
    def _gathered(run: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        n, world = len(x), distributed.get_world_size()
        if n < world:
            return run(x)  # some process would have no row, which not every net can take: each runs them all
        return gathered(run(x[share(n, distributed.get_rank(), world)]), n)

    @property
    def is_linear(self) -> bool:
        return self._net.is_linear

    @property
    def body(self) -> nn.Module:
        return self._net.body

    @property
    def head(self) -> nn.Module:
        return self._net.head

    @property
    def companion(self) -> "SharedNet | None":
        return None if self._net.companion is None else SharedNet(self._net.companion)

    def train(self, mode: bool = True) -> Self:
        self._net.train(mode)
        return self

    def eval(self) -> Self:
        return self.train(False)

    def parameters(self) -> Iterator[nn.Parameter]:
        return self._net.parameters()

    def state_dict(self) -> dict[str, Tensor]:
        return self._net.state_dict()
