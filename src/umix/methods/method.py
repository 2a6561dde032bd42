"""What every method is."""

import abc
from typing import ClassVar

from umix.nets.net import Net
from umix.settings import Settings
from umix.training.trainer import Trainer


class Method(Settings, abc.ABC):
    """Frozen, validated hyperparameters and a recipe of one or more fits."""

    name: ClassVar[str]
    paper: ClassVar[str]
    needs_groups: ClassVar[bool] = False  # of the training split; otherwise batches have no groups
    needs_groups_if: ClassVar[str] = (
        ""  # the condition in words, if needs_groups is a property that depends on settings
    )
    needs_val_groups: ClassVar[bool] = False  # for training, not only to select an epoch
    takes_weights: ClassVar[bool] = False  # whether a training example of weight k counts as k copies of it
    stages: ClassVar[tuple[str, ...]] = ()  # stages before the final fit that may have fit settings of their own

    def first_stage(self, epochs: int) -> int | None:
        """How many epochs of the first stage it records, if a fit has ``epochs``; None if it has no such stage."""
        return None

    @abc.abstractmethod
    def train(self, trainer: Trainer) -> Net:
        """The trained net; ``trainer.fit`` and ``trainer.trajectory`` train the stages."""
