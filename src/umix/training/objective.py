"""Objectives: the risk of a batch, which a fit minimises."""

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from umix.data.batch import Batch
from umix.errors import Setting, UserError
from umix.models.model import Model

#: The state of an objective: named tensors, which every checkpoint contains.
State = dict[str, Tensor]

#: Is called with the predictions of a training batch: ``watch(index, logits, y)``.
Watch = Callable[[Tensor, Tensor, Tensor], None]


class Objective(abc.ABC):
    """The risk of a batch. The object itself never changes: what it learns is passed along in ``state``."""

    needs_groups: bool = False  # without it batches have no group
    takes_weights: bool = False  # whether an example with ``batch.weight`` k counts as k copies of it
    mixes: bool = False  # whether examples are mixed
    reset_at: tuple[int, ...] = ()  # steps before which the optimiser's state is reset, because the risk changes there
    lr_milestones: tuple[tuple[int, float], ...] = ()  # from the step on, the learning rate is multiplied by the factor

    def init(self, n_groups: int) -> State:
        """The state before the first batch: every tensor that it ever has, in its shape, else no checkpoint of it is loaded."""
        return {}

    @property
    def example_weights(self) -> Tensor | None:
        """What each training example counts for, [n] or one number for all; None if there is more to this objective than that.

        Mixing does not count as more: learners that are fitted to weighted rows cannot mix, and the run says so.
        """
        return None

    def logging_lambda(self, see: Callable[[float], None]) -> "Objective":
        """This objective, which also calls ``see`` with the λ of every batch.

        Objectives that mix nothing stay as they are.
        """
        return self

    @abc.abstractmethod
    def risk(self, net: Model, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        """The scalar to minimise, and the state after this batch; all random numbers must come from ``rng``."""


def check_given(objective: Objective, *, groups: bool, weights: bool) -> None:
    """Raise if ``objective`` needs training groups that it may not see, or if it would ignore the weights of examples."""
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
    """Empirical risk: the mean loss.

    ``watch`` is called with the predictions of the training pass, at no extra cost. ``lr_milestones`` is as in ``Objective``.
    """

    takes_weights = True

    watch: Watch | None = None
    lr_milestones: tuple[tuple[int, float], ...] = ()

    @property
    def example_weights(self) -> Tensor:
        return torch.ones(())

    def risk(self, net: Model, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        logits = net(batch.x)
        if self.watch is not None:
            self.watch(batch.index, logits, batch.y)
        if batch.weight is not None:
            return (batch.weight * cross_entropy(logits, batch.y, reduction="none")).mean(), state
        return cross_entropy(logits, batch.y), state
