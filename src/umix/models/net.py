"""What every net of umix offers: ``encode(x)``, ``features(x)``, ``head(z)``, and their composition."""

import abc
from collections.abc import Mapping
from typing import Any, ClassVar, Self, final

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn

from umix.errors import Setting, UserError
from umix.limits import require_memory
from umix.settings import Settings

_COPIES = 3  # of every parameter while it is trained: itself, its gradient, and at least one number of the optimiser


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


@final
class Net(nn.Module):
    """Logits = head(features(x)); mixing features, penalties on features and refitting the head use the two parts.

    ``encoder`` makes numbers of inputs that are none, such as codes; most nets take their inputs as they are and have no encoder.
    ``companion`` is a second net that some methods train beside this one; it takes no part in prediction. ``is_linear``
    says that the net is one linear layer on its inputs as they are, or encoded: then mixing logits is the same as mixing inputs.
    """

    def __init__(
        self,
        body: nn.Module,
        head: nn.Module,
        companion: "Net | None" = None,
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

    def encode(self, x: Tensor) -> Tensor:
        """``x`` as numbers that may be mixed; ``x`` itself where there is no encoder."""
        if self.encoder is None:
            return x
        numbers: Tensor = self.encoder(x)
        return numbers

    def features(self, x: Tensor) -> Tensor:
        """Pooled features, [batch, width]."""
        z: Tensor = self.body(self.encode(x))
        return z

    def forward(self, x: Tensor, *, encoded: bool = False) -> Tensor:
        """Logits, [batch, classes]; with ``encoded``, ``x`` is what ``encode`` returned, mixed perhaps."""
        logits: Tensor = self.head(self.body(x if encoded else self.encode(x)))
        return logits


class NetSettings(Settings, abc.ABC):
    """Frozen options of an architecture and how to build it."""

    part: ClassVar[str] = "net"
    name: ClassVar[str]
    library: ClassVar[str] = ""  # the package that building it needs, beside those that umix always needs
    extra: ClassVar[str] = ""  # the extra of umix that installs it; without one it is installed by its own name
    takes_any_method: ClassVar[bool] = True  # False: only methods for which weights of examples are enough can train it
    by_gradients: ClassVar[bool] = True  # trained by gradient steps; False: fitted to weighted rows in one go
    takes_codes: ClassVar[bool] = False  # whether it takes columns of category codes and missing values as they are
    sized_by_options: ClassVar[bool] = (
        False  # whether build makes parameters of the sizes that the options say, and no more
    )
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

    @property
    def title(self) -> str:
        """The name by which the same net can be made again from its other options."""
        return self.name

    @property
    def has_epochs(self) -> bool:
        """Whether it can be looked at after a part of its training."""
        return True

    @property
    def content(self) -> str:
        """A hash of the files that decide the net beside its options: weights, configuration, code; empty without files."""
        return ""

    def as_json(self) -> dict[str, Any]:
        """Everything that decides the net: its name, its options and the content of its files, but not their paths."""
        content = self.content
        return {"name": self.name, **self.model_dump(mode="json"), **({"content": content} if content else {})}

    def on_columns(self, categories: tuple[int, ...]) -> Self:
        """These settings for inputs whose columns have so many category values, 0 for numbers; most nets do not care."""
        return self

    @abc.abstractmethod
    def build(self, example: Tensor, n_classes: int) -> Net:
        """A freshly initialised net for inputs shaped like ``example`` (one example, no batch axis).

        Random numbers come from torch's generator, which the context has seeded from a named stream.
        """


@final
class AutoNet(NetSettings):
    """The best of several learners: each is trained as a run of its own, and validation chooses one of the runs."""

    name: ClassVar[str] = "auto"
    takes_any_method: ClassVar[bool] = False

    among: tuple[str, ...] = Field(("mlp", "trees"), min_length=1, description="the learners, by name")

    @field_validator("among")
    @classmethod
    def _learners_differ(cls, among: tuple[str, ...]) -> tuple[str, ...]:
        if cls.name in among or len(set(among)) < len(among):
            raise UserError(f"net.among must name different learners, and not auto itself, got {list(among)}.")
        return among

    def build(self, example: Tensor, n_classes: int) -> Net:
        raise TypeError("auto is no net: bench.runs.learners makes a run of each of its learners.")


def require_fitting_net(settings: NetSettings, example: Tensor, n_classes: int) -> None:
    """Raise UserError if the net of these settings is larger than all memory.

    Only nets whose options say how large they are can be asked; others are as large as their files or their code make them.
    """
    if not settings.sized_by_options:
        return
    with torch.device("meta"):  # shapes without numbers
        net = settings.build(example.to("meta"), n_classes)
    require_memory(
        _COPIES * size_of(net),
        f"Training the net {settings.title} for {n_classes} classes and examples of shape {list(example.shape)} takes",
        "make it smaller with ",
        Setting("net"),
        " or its options",
    )


def size_of(module: nn.Module) -> int:
    """Bytes of the parameters and buffers of ``module``."""
    return sum(tensor.numel() * tensor.element_size() for tensor in (*module.parameters(), *module.buffers()))
