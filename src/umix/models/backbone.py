"""Nets of other libraries (``provider:name``) or of your own: a body that gives pooled features and can be frozen, and a head."""

import abc
from pathlib import Path
from typing import Any, ClassVar, Self, final

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from umix.errors import Setting, UserError, cause
from umix.models.net import Net, NetSettings
from umix.models.weight_files import files_hash


class Backbone(NetSettings, abc.ABC):
    """A body that is not defined in umix and a head on top of it; ``freeze`` trains the head only."""

    freeze: bool = Field(False, description="train the head only, on features that are computed once and stored")
    dropout: float = Field(0.0, ge=0, lt=1, description="share of the features dropped before the head in training")

    @property
    @abc.abstractmethod
    def title(self) -> str:
        """The name of the net, ``provider:name``, with absolute paths: it means the same files in any folder."""

    @property
    def names_its_weights(self) -> bool:
        """Whether the options and ``content`` decide the weights of the body; if not, the weights are hashed."""
        return True

    @abc.abstractmethod
    def parts(self, example: Tensor, n_classes: int) -> tuple[nn.Module, nn.Module | None]:
        """The body for inputs like ``example``, and its own head, or None for a new linear head."""

    def build(self, example: Tensor, n_classes: int) -> Net:
        body, head = self.parts(example, n_classes)
        width = try_parts(body, head, example, n_classes, self.title)
        if self.freeze:
            body = Frozen(body)
        if self.dropout:
            body = nn.Sequential(body, nn.Dropout(self.dropout))
        if head is None or self.freeze:  # a frozen body always gets a new linear head
            head = nn.Linear(width, n_classes)
        return Net(body, head)


class WeightsFromFile(Backbone, abc.ABC):
    """A backbone whose weights may come from a local file."""

    weights: Path | None = Field(
        None, exclude=True, description="local file with its weights (.safetensors, or a state_dict saved by torch)"
    )

    @property
    def content(self) -> str:
        return "" if self.weights is None else files_hash([self.weights])


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


@final
class Frozen(nn.Module):
    """A body that is never trained: always in evaluation mode, without gradients."""

    def __init__(self, body: nn.Module) -> None:
        nn.Module.__init__(self)
        self.body = body.eval().requires_grad_(False)

    def train(self, mode: bool = True) -> Self:
        self.training = mode  # the body stays in evaluation mode: no batch statistics, no dropout
        return self

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        z: Tensor = self.body(x)
        return z


def require_trained(*, freeze: bool, trained: bool, title: str) -> None:
    """Raise UserError if a body with random weights would be frozen."""
    if freeze and not trained:
        raise UserError(
            f"freeze must be used with a pretrained body, but {title} starts from scratch; set net.pretrained=true, or give "
            "weights, or leave freeze out."
        )


def require_images(example: Tensor, title: str) -> None:
    """Raise UserError unless ``example`` is an image (or a volume) with its channels first."""
    if not example.is_floating_point() or example.dim() < 3:
        raise UserError(
            f"The net {title} takes images [channels, height, width], got examples of {kind_of(example)}; choose another net with ",
            Setting("net"),
            ".",
        )


def require_tokens(example: Tensor, title: str) -> None:
    """Raise UserError unless ``example`` is a text as token ids, [length]."""
    if example.is_floating_point() or example.dim() != 1:
        raise UserError(
            f"The net {title} takes texts as token ids [length], got examples of {kind_of(example)}; choose another net with ",
            Setting("net"),
            ".",
        )


def try_parts(body: nn.Module, head: nn.Module | None, example: Tensor, n_classes: int, title: str) -> int:
    """How many features ``body`` gives for inputs like ``example``; raises UserError if it or its ``head`` does not fit.

    They are tried in evaluation mode on a batch of two: with one example, a body that flattens the batch axis would pass.
    """
    z = _features(body, example, title)
    if head is not None:
        _check_head(head, z, n_classes, title)
    return int(z.shape[1])


def _features(body: nn.Module, example: Tensor, title: str) -> Tensor:
    """The features that ``body`` gives for two inputs like ``example``, [2, width]."""
    z = _tried(body, torch.stack([example, example]), f"The body of {title} must take examples of {kind_of(example)}")
    if not isinstance(z, Tensor) or z.dim() != 2 or len(z) != 2:
        raise UserError(
            f"The body of {title} must give pooled features [batch, width], got {_shape(z)} for a batch of two examples; "
            "pool or flatten all axes but the first."
        )
    return z


def _check_head(head: nn.Module, z: Tensor, n_classes: int, title: str) -> None:
    """Raise UserError unless ``head`` gives a number for each class for the features ``z``."""
    logits = _tried(head, z, f"The head of {title} must take the {z.shape[1]} features that its body gives")
    if not isinstance(logits, Tensor) or logits.shape != (len(z), n_classes):
        raise UserError(
            f"The head of {title} must give logits [batch, {n_classes}], a number for each class, got {_shape(logits)} for a "
            "batch of two examples; make as many as n_classes says."
        )


def _tried(part: nn.Module, x: Tensor, rule: str) -> Any:
    """``part(x)`` in evaluation mode; if it raises, UserError says that it breaks the ``rule``."""
    training = part.training
    part.eval()
    try:
        with torch.no_grad():
            return part(x)
    except UserError:
        raise
    except Exception as error:  # a forward pass may raise anything for inputs that it cannot take
        raise UserError(
            f"{rule}, but it raised {cause(error)}; correct it or choose another net with ", Setting("net"), "."
        ) from None
    finally:
        part.train(training)


def _shape(made: object) -> str:
    return str(list(made.shape)) if isinstance(made, Tensor) else type(made).__name__


def without_last_layer(model: nn.Module, title: str) -> nn.Module:
    """``model`` without its last linear layer, so that it returns that layer's inputs: the features."""
    name = next((name for name, part in reversed(list(model.named_modules())) if isinstance(part, nn.Linear)), None)
    if not name:
        raise UserError(f"{title} must end in a linear layer that can be replaced by a head, but it has none.")
    parent, _, last = name.rpartition(".")
    setattr(model.get_submodule(parent), last, nn.Identity())
    return model


def kind_of(example: Tensor) -> str:
    """Shape and type of ``example`` in words."""
    return f"shape {list(example.shape)} and type {str(example.dtype).removeprefix('torch.')}"
