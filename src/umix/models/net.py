"""Nets: models of layers, which are trained by gradient steps."""

import abc
from typing import Self, final

from torch import Tensor, nn

from umix.data.task import Split
from umix.models.model import Encoder, Model, ModelSettings


@final
class Net(Model):
    """A model whose features are those of ``body``."""

    def __init__(
        self,
        body: nn.Module,
        head: nn.Module,
        companion: Model | None = None,
        *,
        encoder: Encoder | None = None,
        is_linear: bool = False,
    ) -> None:
        nn.Module.__init__(self)
        self.is_linear = is_linear
        self.encoder = encoder
        self.body = body
        self.head = head
        self.companion = companion

    def encoded_features(self, x: Tensor) -> Tensor:
        z: Tensor = self.body(x)
        return z

    def known_logits(self, split: Split) -> None:
        return None

    def for_trial(self) -> Self:
        return self

    def as_layers(self, title: str) -> Self:
        return self

    def as_module(self, title: str) -> Self:
        return self


class NetSettings(ModelSettings, abc.ABC):
    """Frozen options of an architecture and how to build it."""

    @abc.abstractmethod
    def build(self, example: Tensor, n_classes: int) -> Net: ...
