"""What every net of umix offers: ``features(x)``, ``head(z)``, and their composition."""

import abc
from typing import Any, ClassVar, final

from torch import Tensor, nn

from umix.settings import Settings


@final
class Net(nn.Module):
    """Logits = head(features(x)); mixing features, penalties on features and refitting the head use the two parts.

    ``companion`` is a second net that some methods train beside this one; it takes no part in prediction. ``is_linear``
    says that the net is one linear layer on its inputs as they are: then mixing logits is the same as mixing inputs.
    """

    def __init__(
        self, body: nn.Module, head: nn.Module, companion: "Net | None" = None, *, is_linear: bool = False
    ) -> None:
        nn.Module.__init__(self)
        self.is_linear = is_linear
        self.body = body
        self.head = head
        self.companion = companion

    def features(self, x: Tensor) -> Tensor:
        """Pooled features, [batch, width]."""
        z: Tensor = self.body(x)
        return z

    def forward(self, x: Tensor) -> Tensor:
        """Logits, [batch, classes]."""
        logits: Tensor = self.head(self.body(x))
        return logits


class NetSettings(Settings, abc.ABC):
    """Frozen options of an architecture and how to build it."""

    part: ClassVar[str] = "net"
    name: ClassVar[str]
    library: ClassVar[str] = ""  # the package that building it needs, beside those that umix always needs
    takes_codes: ClassVar[bool] = False  # categories as codes and missing values as NaN (Task.categories), as trees do
    extra: ClassVar[str] = ""  # the extra of umix that installs it; without one it is installed by its own name

    @classmethod
    def usage(cls) -> str:
        """How people write the name of such a net: ``mlp``, ``hf:NAME``, ``MODULE:FACTORY``."""
        return cls.name

    @classmethod
    def options_in(cls, name: str) -> dict[str, Any] | None:
        """The options that ``name`` stands for; None if ``name`` does not mean a net of this class."""
        return {} if name == cls.name else None

    @property
    def content(self) -> str:
        """A hash of the files that decide the net beside its options: weights, configuration, code; empty without files."""
        return ""

    def as_json(self) -> dict[str, Any]:
        """Everything that decides the net: its name, its options and the content of its files, but not their paths."""
        content = self.content
        return {"name": self.name, **self.model_dump(mode="json"), **({"content": content} if content else {})}

    @abc.abstractmethod
    def build(self, example: Tensor, n_classes: int) -> Net:
        """A freshly initialised net for inputs shaped like ``example`` (one example, no batch axis).

        Random numbers come from torch's generator, which the trainer has seeded from a named stream.
        """
