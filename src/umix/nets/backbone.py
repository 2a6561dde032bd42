"""Nets of other libraries or of one's own: a body that gives pooled features, which may be frozen, and a linear head."""

import abc
from pathlib import Path
from typing import Any, Self, final

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from umix.errors import Setting, UserError, cause
from umix.nets.net import Net, NetSettings
from umix.nets.weight_files import files_hash


class Backbone(NetSettings, abc.ABC):
    """A body from elsewhere and a head on top of it; ``freeze`` trains the head only."""

    freeze: bool = Field(False, description="train the head only, on features that are computed once and stored")
    dropout: float = Field(0.0, ge=0, lt=1, description="share of the features dropped before the head in training")

    @property
    @abc.abstractmethod
    def title(self) -> str:
        """The net as people name it, ``provider:name``; it finds the same files from any folder."""

    @property
    def names_its_weights(self) -> bool:
        """Whether the options and ``content`` decide the weights of the body; else they have to be looked at."""
        return True

    @abc.abstractmethod
    def parts(self, example: Tensor, n_classes: int) -> tuple[nn.Module, nn.Module | None]:
        """The body for inputs like ``example``, and a head of its own where it has one."""

    def build(self, example: Tensor, n_classes: int) -> Net:
        body, head = self.parts(example, n_classes)
        width = try_parts(body, head, example, n_classes, self.title)
        if self.freeze:
            body = Frozen(body)
        if self.dropout:
            body = nn.Sequential(body, nn.Dropout(self.dropout))
        if head is None or self.freeze:  # on a frozen body a new linear layer is trained, whatever its own head was
            head = nn.Linear(width, n_classes)
        return Net(body, head)


class WeightsFromFile(Backbone, abc.ABC):
    """A backbone whose weights may come from a local file."""

    weights: Path | None = Field(
        None, exclude=True, description="local file with its weights (.safetensors, or a state_dict saved by torch)"
    )

    @property
    def content(self) -> str:
        return "" if self.weights is None else file_content(self.weights)


class LibraryNet(WeightsFromFile, abc.ABC):
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


def file_content(path: Path) -> str:
    """The hash of a file of weights, which must be there."""
    if not path.is_file():
        raise UserError(f"There is no file of weights at {path}.")
    return files_hash([path])


@final
class Frozen(nn.Module):
    """A body that stays as it is: in evaluation mode, without gradients."""

    def __init__(self, body: nn.Module) -> None:
        nn.Module.__init__(self)
        self.body = body.eval().requires_grad_(False)

    def train(self, mode: bool = True) -> Self:
        self.training = mode  # the body never leaves evaluation mode: batch statistics and dropout stay out of it
        return self

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        z: Tensor = self.body(x)
        return z


def require_trained(*, freeze: bool, trained: bool, title: str) -> None:
    """Raise where the body to be frozen would be a random one."""
    if freeze and not trained:
        raise UserError(
            f"freeze must be used with a pretrained body, but {title} starts from scratch; set net.pretrained=true, or give "
            "weights, or leave freeze out."
        )


def require_images(example: Tensor, title: str) -> None:
    """Raise unless ``example`` is an image (or a volume) with its channels first."""
    if not example.is_floating_point() or example.dim() < 3:
        raise UserError(
            f"The net {title} takes images [channels, height, width], got examples of {kind_of(example)}; choose another net with ",
            Setting("net"),
            ".",
        )


def require_tokens(example: Tensor, title: str) -> None:
    """Raise unless ``example`` is a text as whole numbers, one per token."""
    if example.is_floating_point() or example.dim() != 1:
        raise UserError(
            f"The net {title} takes texts as token ids [length], got examples of {kind_of(example)}; choose another net with ",
            Setting("net"),
            ".",
        )


def try_parts(body: nn.Module, head: nn.Module | None, example: Tensor, n_classes: int, title: str) -> int:
    """How many features ``body`` gives for inputs like ``example``; where it or its own ``head`` does not fit, it is refused.

    They are tried on a batch of two, in evaluation mode: a batch of one hides that examples are thrown together.
    """
    z = _features(body, example, title)
    if head is not None:
        _check_head(head, z, n_classes, title)
    return int(z.shape[1])


def _features(body: nn.Module, example: Tensor, title: str) -> Tensor:
    """What ``body`` gives for two inputs like ``example``, [2, width]."""
    z = _tried(body, torch.stack([example, example]), f"The body of {title} must take examples of {kind_of(example)}")
    if not isinstance(z, Tensor) or z.dim() != 2 or len(z) != 2:
        raise UserError(
            f"The body of {title} must give pooled features [batch, width], got {_shape(z)} for a batch of two examples; "
            "pool or flatten all axes but the first."
        )
    return z


def _check_head(head: nn.Module, z: Tensor, n_classes: int, title: str) -> None:
    """Raise unless ``head`` gives a number for each class for the features ``z``."""
    logits = _tried(head, z, f"The head of {title} must take the {z.shape[1]} features that its body gives")
    if not isinstance(logits, Tensor) or logits.shape != (len(z), n_classes):
        raise UserError(
            f"The head of {title} must give logits [batch, {n_classes}], a number for each class, got {_shape(logits)} for a "
            "batch of two examples; make as many as n_classes says."
        )


def _tried(part: nn.Module, x: Tensor, rule: str) -> Any:
    """``part(x)`` in evaluation mode; what it raises breaks the ``rule``."""
    training = part.training
    part.eval()
    try:
        with torch.no_grad():
            return part(x)
    except UserError:
        raise
    except Exception as error:  # whatever a forward pass raises at inputs it cannot take
        raise UserError(
            f"{rule}, but it raised {cause(error)}; correct it or choose another net with ", Setting("net"), "."
        ) from None
    finally:
        part.train(training)


def _shape(made: object) -> str:
    return str(list(made.shape)) if isinstance(made, Tensor) else type(made).__name__


def without_last_layer(model: nn.Module, title: str) -> nn.Module:
    """``model`` without its last linear layer, so that it gives the features that layer was given."""
    name = next((name for name, part in reversed(list(model.named_modules())) if isinstance(part, nn.Linear)), None)
    if not name:
        raise UserError(f"{title} must end in a linear layer that can be replaced by a head, but it has none.")
    parent, _, last = name.rpartition(".")
    setattr(model.get_submodule(parent), last, nn.Identity())
    return model


def kind_of(example: Tensor) -> str:
    """Shape and type of ``example`` in words."""
    return f"shape {list(example.shape)} and type {str(example.dtype).removeprefix('torch.')}"
