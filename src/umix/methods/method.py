"""The base class of all methods."""

import abc
from collections.abc import Mapping
from typing import ClassVar

from umix.models.model import Capability
from umix.settings import Settings
from umix.training.context import Context
from umix.training.stage import ErmStage
from umix.training.train_result import TrainResult

#: What a method needs of the model that it trains.
Needs = frozenset[Capability]
WEIGHTS_ONLY: Needs = frozenset({"sample_weight"})  # then trees and other estimators can be trained too


#: What differs from the papers in all methods alike; ``umix methods NAME`` and the pages of the methods say it.
DIFFERS_EVERYWHERE = (
    "In all methods the threshold of two classes, or the biases of several, is tuned on validation together with the epoch. Papers "
    "take the class with the largest logit, as threshold=off and the presets paper and reference do."
)


class Method(Settings, abc.ABC):
    """Frozen, validated hyperparameters and a recipe of one or more fits."""

    name: ClassVar[str]
    paper: ClassVar[str]
    needs_groups: ClassVar[bool] = False  # in the training split; without it batches have no group
    needs_groups_if: ClassVar[str] = ""  # in words, if it depends on the settings; needs_groups is a property then
    needs_val_groups: ClassVar[bool] = False  # for training, not only for selection
    needs_some_groups: ClassVar[bool] = False  # of some rows of validation or training, to train with
    uses_known_groups: ClassVar[bool] = False  # trains with groups where they are known and allowed, else without
    takes_weights: ClassVar[bool] = False  # whether a training example of weight k counts as k copies of it
    needs: ClassVar[Needs] = frozenset({"gradients"})  # of the model; planning compares it with what the model offers
    mixing_options: ClassVar[tuple[str, ...]] = ()  # options that mean nothing to a model whose examples are not mixed
    open_with: ClassVar[Mapping[str, str]] = {}  # options that a preset leaves ``auto`` only as long as another one is
    stages: ClassVar[tuple[str, ...]] = ()  # settings names that the stages before its final fit may have

    def erm_stages(self, epochs: int) -> tuple[ErmStage, ...]:
        """The ERM fits that ``train`` will ask the context for, in order, where the final fit has ``epochs``."""
        return ()

    @abc.abstractmethod
    def train(self, context: Context) -> TrainResult:
        """The result of ``context.fit``, or of ``context.adopt`` for a net made by other means, with notes of what came before."""
