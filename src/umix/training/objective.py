"""What one batch costs."""

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from torch import Tensor
from torch.nn.functional import cross_entropy

from umix.data.batch import Batch
from umix.errors import Setting, UserError
from umix.nets.net import Net

#: What an objective has learned so far: named tensors, saved with every checkpoint.
State = dict[str, Tensor]

#: Looks at the clean predictions of a batch: ``watch(index, logits, y)``.
Watch = Callable[[Tensor, Tensor, Tensor], None]


class Objective(abc.ABC):
    """What one batch costs. The object itself never changes; whatever it learns travels in ``state``."""

    needs_groups: bool = False  # without it batches carry no group
    takes_weights: bool = False  # whether it makes an example of ``batch.weight`` k count as k copies of it
    reset_at: tuple[int, ...] = ()  # the steps before which the optimiser forgets its momentum: the risk changes there

    def init(self, n_groups: int) -> State:
        """The state before the first batch."""
        return {}

    @abc.abstractmethod
    def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        """The scalar to minimise, and the state after this batch; random numbers come from ``rng`` only."""


def check_given(objective: Objective, *, groups: bool, weights: bool) -> None:
    """Refuse an objective that needs training groups it may not see, or that would ignore the weights of examples."""
    what = type(objective).__name__
    if objective.needs_groups and not groups:
        raise UserError(f"{what} needs training groups, but its method does not declare needs_groups.")
    if weights and not objective.takes_weights:
        raise UserError(
            f"{what} must weigh examples to train with weights, but it does not; leave ", Setting("weight"), " out."
        )


@final
@dataclass(frozen=True, eq=False)
class MeanRisk(Objective):
    """Empirical risk: the mean loss. ``watch`` is shown the predictions of the training pass, which cost nothing extra."""

    takes_weights = True

    watch: Watch | None = None

    def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        logits = net(batch.x)
        if self.watch is not None:
            self.watch(batch.index, logits, batch.y)
        if batch.weight is not None:
            return (batch.weight * cross_entropy(logits, batch.y, reduction="none")).mean(), state
        return cross_entropy(logits, batch.y), state
