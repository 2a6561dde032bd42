"""Transforms that settle what is done with a batch before its examples are read, so that threads can share the work.

Everything random is drawn for the whole batch when it is planned. Each example is then changed by itself, so that the same batch
comes back whichever thread changes which examples, and in whatever order.
"""

import abc

import numpy as np
from torch import Tensor


class BatchPlan(abc.ABC):
    """What is done with each example of one batch; ``shape`` is that of the inputs it becomes, float32.

    ``at_once`` says how many examples are best written by one call.
    """

    shape: tuple[int, ...]
    at_once: int

    @abc.abstractmethod
    def write(self, x: Tensor, rows: slice, out: Tensor) -> None:
        """Write what becomes of the stored examples ``x``, which are the ``rows`` of the batch, to ``out``.

        Several threads may call this at the same time for different rows.
        """


class PlannedTransform(abc.ABC):
    """A transform for evaluation that can be planned."""

    @abc.abstractmethod
    def plan(self, shape: tuple[int, ...]) -> BatchPlan:
        """What is done with a batch of stored examples of this shape on a CPU."""


class PlannedAugment(abc.ABC):
    """A transform for training that can be planned."""

    @abc.abstractmethod
    def plan(self, shape: tuple[int, ...], rng: np.random.Generator) -> BatchPlan:
        """What is done with a batch of stored examples of this shape on a CPU; all draws are taken from ``rng`` here."""
