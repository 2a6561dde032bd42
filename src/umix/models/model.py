"""What every model of umix offers: ``features(x)``, ``head(z)`` and their composition, and what its settings say of it.

A ``Net`` is trained by gradient steps, an ``EstimatorModel`` is fitted to weighted rows in one go. Code outside this package asks
what a model ``offers``, not of which class it is.
"""

import abc
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, final

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn

from umix.data.task import Split
from umix.errors import Setting, UserError
from umix.limits import require_memory
from umix.settings import Settings

if TYPE_CHECKING:
    from umix.models.net import Net

_COPIES = 3  # of every parameter while it is trained: itself, its gradient, and at least one number of the optimiser

#: What a model can be trained with, and what a method needs: gradient steps, mixed examples, a weight of every example.
Capability = Literal["gradients", "mixing", "sample_weight"]


class Encoder(nn.Module, abc.ABC):
    """From inputs as they are stored to numbers that may be mixed; it has buffers, but no parameters.

    The shapes of its buffers must not depend on the training inputs, so that a stored net can be loaded into a new one.
    """

    @abc.abstractmethod
    def fit(self, x: Tensor) -> None:
        """Learn scales and the like from the training inputs ``x`` [n, ...]; done once, before any gradient step."""

    @abc.abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """The numbers of a batch, [batch, ...], without gaps."""


class Model(nn.Module, abc.ABC):
    """Logits = head(features(x)); mixing features, penalties on features and refitting the head use the two parts.

    ``encoder`` makes numbers of inputs that are none, such as codes; most models take their inputs as they are and have no encoder.
    ``companion`` is a second model that some methods train beside this one; it takes no part in prediction. ``is_linear``
    says that the model is one linear layer on its inputs as they are, or encoded: then mixing logits is the same as mixing inputs.
    """

    encoder: Encoder | None
    head: nn.Module
    companion: "Model | None"
    is_linear: bool

    def encode(self, x: Tensor) -> Tensor:
        """``x`` as numbers that may be mixed; ``x`` itself where there is no encoder."""
        if self.encoder is None:
            return x
        numbers: Tensor = self.encoder(x)
        return numbers

    @abc.abstractmethod
    def encoded_features(self, x: Tensor) -> Tensor:
        """Pooled features, [batch, width], of what ``encode`` returned."""

    def features(self, x: Tensor) -> Tensor:
        """Pooled features, [batch, width]."""
        return self.encoded_features(self.encode(x))

    def forward(self, x: Tensor, *, encoded: bool = False) -> Tensor:
        """Logits, [batch, classes]; with ``encoded``, ``x`` is what ``encode`` returned, mixed perhaps."""
        logits: Tensor = self.head(self.encoded_features(x if encoded else self.encode(x)))
        return logits

    @abc.abstractmethod
    def known_logits(self, split: Split) -> Tensor | None:
        """The logits of all examples of ``split`` [n, classes] where they need no pass over batches; else None."""

    @abc.abstractmethod
    def for_trial(self) -> Self:
        """This model for a trial: where many are fitted to choose one of them, speed counts more than the last digit."""

    @abc.abstractmethod
    def as_layers(self, title: str) -> "Net":
        """This model as a net of torch, for formats that store its weights; raises where it is none."""

    @abc.abstractmethod
    def as_module(self, title: str) -> nn.Module:
        """A module with the same logits that torch can trace, for formats that store a graph; raises where there is none."""


class LearnerSettings(Settings, abc.ABC):
    """What ``--net`` names, with frozen options: a model, or several to choose from."""

    part: ClassVar[str] = "net"
    name: ClassVar[str]
    library: ClassVar[str] = ""  # the package that building it needs, beside those that umix always needs
    extra: ClassVar[str] = ""  # the extra of umix that installs it; without one it is installed by its own name
    offers: ClassVar[frozenset[Capability]] = frozenset({"gradients", "mixing", "sample_weight"})
    fit_options: ClassVar[frozenset[str] | None] = None  # fit settings that mean something to it; None: all
    from_data: ClassVar[tuple[str, ...]] = ()  # options that are not the user's: the data decide them

    @classmethod
    def usage(cls) -> str:
        """How people write the name of such a net: ``mlp``, ``hf:NAME``, ``MODULE:FACTORY``."""
        return cls.name

    @classmethod
    def options_in(cls, name: str) -> dict[str, Any] | None:
        """The options that ``name`` stands for; None if ``name`` does not mean a net of this class."""
        return {} if name == cls.name else None

    @classmethod
    def usual_fit(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Fit settings that suit a net with these ``options`` better than those of a preset."""
        return {}

    @classmethod
    def used_fit(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Those of the fit ``settings`` that mean something to such a model."""
        return {key: value for key, value in settings.items() if cls.fit_options is None or key in cls.fit_options}

    @property
    def title(self) -> str:
        """The name by which the same net can be made again from its other options."""
        return self.name

    @property
    def content(self) -> str:
        """A hash of the files that decide the net beside its options: weights, configuration, code; empty without files."""
        return ""

    def as_json(self) -> dict[str, Any]:
        """Everything that decides the net: its name, its options and the content of its files, but not their paths."""
        content = self.content
        return {"name": self.name, **self.model_dump(mode="json"), **({"content": content} if content else {})}


class ModelSettings(LearnerSettings, abc.ABC):
    """Frozen options of a model and how to build it."""

    supports_categorical: ClassVar[bool] = False  # takes columns of category codes and missing values as they are
    sized_by_options: ClassVar[bool] = (
        False  # whether build makes parameters of the sizes that the options say, and no more
    )

    @property
    def has_epochs(self) -> bool:
        """Whether it can be looked at after a part of its training."""
        return True

    def with_categories(self, categories: tuple[int, ...]) -> Self:
        """These settings for inputs whose columns have so many category values, 0 for numbers; most models do not care."""
        return self

    def check_example(self, example: Tensor, *, data: str) -> None:
        """Raise where the model cannot take inputs like ``example``, those of ``data``; most find out when they are built."""

    @abc.abstractmethod
    def build(self, example: Tensor, n_classes: int) -> Model:
        """A freshly initialised model for inputs shaped like ``example`` (one example, no batch axis).

        Random numbers come from torch's generator, which the context has seeded from a named stream.
        """


@final
class AutoNet(LearnerSettings):
    """The best of several learners: each is trained, and validation chooses one of them."""

    name: ClassVar[str] = "auto"
    offers: ClassVar[frozenset[Capability]] = frozenset({"mixing", "sample_weight"})  # estimators do without the mixing

    among: tuple[str, ...] = Field(("mlp", "trees"), min_length=1, description="the learners, by name")

    @field_validator("among")
    @classmethod
    def _learners_differ(cls, among: tuple[str, ...]) -> tuple[str, ...]:
        if cls.name in among or len(set(among)) < len(among):
            raise UserError(f"net.among must name different learners, and not auto itself, got {list(among)}.")
        return among


def require_memory_for(settings: ModelSettings, example: Tensor, n_classes: int) -> None:
    """Raise UserError if the model of these settings is larger than all memory.

    Only models whose options say how large they are can be asked; others are as large as their files or their code make them.
    """
    if not settings.sized_by_options:
        return
    with torch.device("meta"):  # shapes without numbers
        model = settings.build(example.to("meta"), n_classes)
    require_memory(
        _COPIES * size_of(model),
        f"Training the net {settings.title} for {n_classes} classes and examples of shape {list(example.shape)} takes",
        "make it smaller with ",
        Setting("net"),
        " or its options",
    )


def size_of(module: nn.Module) -> int:
    """Bytes of the parameters and buffers of ``module``."""
    return sum(tensor.numel() * tensor.element_size() for tensor in (*module.parameters(), *module.buffers()))
