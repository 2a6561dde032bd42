"""One fit in several processes: each computes its share of a batch's rows, and all see the outputs of the whole batch.

Every process draws the same batches from the same random streams. Objectives are given a
``SharedNet``, which runs only the rows of this process and gathers the outputs of the others. So
one code computes weights, pairs, sorted losses, group weights and penalties as in a single process,
and the risk is the same number in every process. The gradient of the risk reaches the parameters of
a process through its own rows only. DDP averages gradients over processes, so ``_Gather``
multiplies them by the number of processes.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Self, final

import torch
from torch import Tensor, distributed, nn

from umix.data.task import Split
from umix.models.model import Model


def share(n: int, rank: int, world: int) -> slice:
    """The rows of a batch of ``n`` that process ``rank`` computes: a slice; the sizes of all slices differ by at most one.

    >>> [share(5, rank, 2) for rank in range(2)]
    [slice(0, 3, None), slice(3, 5, None)]
    """
    size, extra = divmod(n, world)
    begin = rank * size + min(rank, extra)
    return slice(begin, begin + size + (rank < extra))


def gathered(mine: Tensor, n: int) -> Tensor:
    """The outputs of all ``n`` rows, [n, ...]; ``mine`` are those that this process has computed."""
    rank, world = distributed.get_rank(), distributed.get_world_size()
    if torch.is_grad_enabled() and mine.requires_grad:
        rows: Tensor = _Gather.apply(mine, n, rank, world)  # type: ignore[no-untyped-call]
        return rows
    return _all_rows(mine, n, world)


def _all_rows(mine: Tensor, n: int, world: int) -> Tensor:
    most = -(-n // world)
    padded = mine.new_zeros(most, *mine.shape[1:])  # all_gather needs parts of equal size
    padded[: len(mine)] = mine.detach()
    parts = [torch.empty_like(padded) for _ in range(world)]
    distributed.all_gather(parts, padded)
    sizes = (share(n, rank, world) for rank in range(world))
    return torch.cat([part[: rows.stop - rows.start] for part, rows in zip(parts, sizes, strict=True)])


@final
class _Gather(torch.autograd.Function):
    """Forward: the outputs of all rows.

    Backward: the gradient of this process's rows, times the number of processes.
    """

    @staticmethod
    def forward(ctx: Any, mine: Tensor, n: int, rank: int, world: int) -> Tensor:
        ctx.rows, ctx.world = share(n, rank, world), world
        return _all_rows(mine, n, world)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        return grads[0][ctx.rows] * ctx.world, None, None, None


@final
class SharedNet:
    """A net that several processes share, as objectives and evaluation see it: takes a whole batch, returns all outputs.

    ``runner`` runs the forward pass: the net itself or a wrapper of it. The head alone is small,
    and every process has its inputs, so each process runs it on all rows.
    """

    def __init__(self, net: Model, runner: Model | None = None) -> None:
        self._net = net
        self._runner = net if runner is None else runner

    def __call__(self, x: Tensor, *, encoded: bool = False) -> Tensor:
        """Logits, [batch, classes]."""
        return self._gathered(partial(self._runner, encoded=True) if encoded else self._runner, x)

    def encode(self, x: Tensor) -> Tensor:
        """``x`` as numbers that may be mixed; every process encodes all rows, which has no gradient."""
        return self._net.encode(x)

    def features(self, x: Tensor) -> Tensor:
        """Pooled features, [batch, width]."""
        return self._gathered(self._runner.features, x)

    @staticmethod
    def _gathered(run: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        n, world = len(x), distributed.get_world_size()
        if n < world:
            return run(x)  # some process would have no row, which not every net accepts: each process runs all rows
        return gathered(run(x[share(n, distributed.get_rank(), world)]), n)

    def known_logits(self, split: Split) -> None:
        """None: every process computes its share."""

    @property
    def is_linear(self) -> bool:
        return self._net.is_linear

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
