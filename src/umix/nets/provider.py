"""Nets that another library knows by name, written ``provider:name``."""

import abc
from typing import Any, ClassVar, Self

from pydantic import model_validator

from umix.nets.backbone import Backbone, WeightsFromFile, require_trained


class Provider(Backbone, abc.ABC):
    """The nets of ``library``; a subclass has a field ``model``, which is what stands after the colon."""

    library: ClassVar[str]

    @classmethod
    def usage(cls) -> str:
        return f"{cls.name}:NAME"

    @classmethod
    def options_in(cls, name: str) -> dict[str, Any] | None:
        provider, _, model = name.partition(":")
        return {"model": model} if provider == cls.name and model else None


class LibraryNet(WeightsFromFile, Provider, abc.ABC):
    """A net that a library knows by the name ``model``; its weights are the library's, a file's, or random."""

    model: str
    pretrained: bool

    @model_validator(mode="after")
    def _has_something_to_freeze(self) -> Self:
        require_trained(freeze=self.freeze, trained=self.pretrained or self.weights is not None, title=self.title)
        return self

    @property
    def title(self) -> str:
        return f"{self.name}:{self.model}"
