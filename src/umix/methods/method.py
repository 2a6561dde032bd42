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
    needs_groups: ClassVar[bool] = False  # of the training split; without it batches carry no group
    needs_groups_if: ClassVar[str] = ""  # in words, where the settings decide: needs_groups is a property then
    needs_val_groups: ClassVar[bool] = False  # to train with, beyond selection
    takes_weights: ClassVar[bool] = False  # whether a training example of weight k counts as k copies of it
    stages: ClassVar[tuple[str, ...]] = ()  # stages before the final fit, whose fit settings may be set apart

    def first_stage(self, epochs: int) -> int | None:
        """How many epochs of a recorded first stage it looks at, where a fit has ``epochs``; None without such a stage."""
        return None

    @abc.abstractmethod
    def train(self, trainer: Trainer) -> Net:
        """The trained net, by way of ``trainer.fit`` and ``trainer.trajectory``."""
