"""Nets of MONAI, for images and volumes: ``monai:DenseNet121`` is the one that Camelyon17 is trained with, from scratch."""

import inspect
from typing import Any, ClassVar, final

from pydantic import Field
from torch import Tensor, nn

from umix.errors import UserError, unknown
from umix.nets.backbone import require_images, without_last_layer
from umix.nets.library import library
from umix.nets.provider import LibraryNet
from umix.nets.weight_files import load_weights

_CHANNELS, _CLASSES = ("in_channels", "n_input_channels", "in_chns"), ("out_channels", "num_classes", "classes")


@final
class Monai(LibraryNet):
    """A classifier of MONAI, such as DenseNet121 or SEResNet50, from scratch unless pretrained."""

    name: ClassVar[str] = "monai"
    library: ClassVar[str] = "monai"
    extra: ClassVar[str] = "monai"

    model: str = Field(description="name in monai.networks.nets")
    pretrained: bool = Field(False, description="start from the weights that MONAI downloads, where it has some")

    @property
    def names_its_weights(self) -> bool:
        return self.weights is not None

    def parts(self, example: Tensor, n_classes: int) -> tuple[nn.Module, None]:
        require_images(example, self.title)
        nets = library("monai.networks.nets", extra=self.extra)
        known = {name for name in dir(nets) if callable(getattr(nets, name)) and not name.startswith("_")}
        if self.model not in known:
            raise unknown("net of MONAI", self.model, known)
        try:
            model = getattr(nets, self.model)(**self._options(getattr(nets, self.model), example, n_classes))
        except UserError:
            raise
        except Exception as error:  # every net raises other exceptions for wrong options, and downloads raise more
            reason = " ".join(str(error).split()).rstrip(".")[:200]
            raise UserError(
                f"{self.title} must be a classifier that can be built for {example.dim() - 1} dimensions and {len(example)} "
                f"channels, but it cannot ({reason})."
            ) from None
        if self.weights is not None:
            load_weights(model, self.weights)
        return without_last_layer(model, self.title), None

    def _options(self, kind: Any, example: Tensor, n_classes: int) -> dict[str, Any]:
        """The arguments for dimensions, channels and classes under the names that this net uses."""
        # A class passes its other arguments to its parents; a function, such as resnet50, passes them to ResNet.
        makers = kind.__mro__[:-1] if isinstance(kind, type) else (kind,)
        accepted = {name for maker in makers for name in inspect.signature(maker).parameters}
        open_ended = not isinstance(kind, type)
        options: dict[str, Any] = {"spatial_dims": example.dim() - 1}
        for names, value in ((_CHANNELS, len(example)), (_CLASSES, n_classes)):
            name = next((name for name in names if name in accepted), names[1] if open_ended else None)
            if name is None:
                raise UserError(f"{self.title} must be a classifier, but it takes no number of {names[1]}.")
            options[name] = value
        download = self.pretrained and self.weights is None
        return options | ({"pretrained": True} if download else {})
