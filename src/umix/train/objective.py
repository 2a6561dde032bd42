"""What one batch costs."""

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from torch import Tensor
from torch.nn.functional import cross_entropy

from umix.data.batch import Batch
from umix.errors import UserError
from umix.nets.net import Net

#: What an objective has learned so far: named tensors, saved with every checkpoint.
State = dict[str, Tensor]

#: Looks at the clean predictions of a batch: ``watch(index, logits, y)``.
Watch = Callable[[Tensor, Tensor, Tensor], None]


class Objective(abc.ABC):
    """What one batch costs. The object itself never changes; whatever it learns travels in ``state``."""

    needs_groups: bool = False  # without it batches carry no group
    reset_at: tuple[int, ...] = ()  # the steps before which the optimiser forgets its momentum: the risk changes there

    def init(self, n_groups: int) -> State:
        """The state before the first batch."""
        return {}

    @abc.abstractmethod
    def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        """The scalar to minimise, and the state after this batch; random numbers come from ``rng`` only."""


def require_declared(objective: Objective, *, groups: bool) -> None:
    """Raise where ``objective`` wants the training groups of a method that did not say so."""
    if objective.needs_groups and not groups:
        raise UserError(
            f"{type(objective).__name__} needs training groups, but its method does not declare needs_groups."
        )


@final
@dataclass(frozen=True, eq=False)
class MeanRisk(Objective):
    """Empirical risk: the mean loss. ``watch`` is shown the predictions of the training pass, which cost nothing extra."""

    watch: Watch | None = None

    def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        logits = net(batch.x)
        if self.watch is not None:
            self.watch(batch.index, logits, batch.y)
        return cross_entropy(logits, batch.y), state
