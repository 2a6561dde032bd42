"""Image nets of three libraries, by the names that they have there.

- ``torchvision:resnet50`` with its ImageNet weights, from its cache, a download or a local file.
- ``timm:convnext_tiny.in12k_ft_in1k``, with the weights of that tag.
- ``monai:DenseNet121``, for images and volumes: the one that Camelyon17 is trained with, from scratch.
"""

import inspect
from typing import Any, ClassVar, final

from pydantic import Field
from torch import Tensor, nn

from umix.errors import Setting, UserError, unknown
from umix.models.backbone import LibraryNet, require_images, without_last_layer
from umix.models.library import library
from umix.models.weight_files import files_hash, load_weights

# What the nets of MONAI call the numbers of channels and of classes.
_CHANNELS, _CLASSES = ("in_channels", "n_input_channels", "in_chns"), ("out_channels", "num_classes", "classes")


@final
class TorchVision(LibraryNet):
    """A classifier of torchvision, such as resnet50, with the weights it recommends unless a file is given."""

    name: ClassVar[str] = "torchvision"
    library: ClassVar[str] = "torchvision"
    extra: ClassVar[str] = "torchvision"

    model: str = Field(description="name in torchvision.models")
    pretrained: bool = Field(True, description="start from torchvision's recommended weights")

    @property
    def content(self) -> str:
        """The file's hash, or the name of the weights, which holds a hash too."""
        if self.weights is not None:
            return files_hash([self.weights])
        return str(self._recommended().url).rpartition("/")[2] if self.pretrained else ""

    def parts(self, example: Tensor, n_classes: int) -> tuple[nn.Module, None]:
        require_images(example, self.title)
        weights = self._recommended() if self.pretrained and self.weights is None else None
        try:
            model = self._models().get_model(self.model, weights=weights)
        except OSError as error:
            raise UserError(
                f"The weights of {self.title} are not in the local cache and cannot be downloaded ({error}); give a local file "
                "with ",
                Setting("net.weights", "FILE"),
                ".",
            ) from None
        if self.weights is not None:
            load_weights(model, self.weights)
        return without_last_layer(model, self.title), None

    def _models(self) -> Any:
        models = library(self.library, extra=self.extra).models
        if self.model not in models.list_models(module=models):
            raise unknown("net of torchvision", self.model, models.list_models(module=models))
        return models

    def _recommended(self) -> Any:
        return self._models().get_model_weights(self.model).DEFAULT


@final
class Timm(LibraryNet):
    """A net of timm, by its name and tag of weights."""

    name: ClassVar[str] = "timm"
    library: ClassVar[str] = "timm"
    extra: ClassVar[str] = "timm"

    model: str = Field(description="name in timm, with or without the tag of its weights")
    pretrained: bool = Field(True, description="start from the weights of that tag, which timm downloads")

    @property
    def content(self) -> str:
        """The file's hash, or the name and tag of the weights."""
        if self.weights is not None:
            return files_hash([self.weights])
        if not self.pretrained:
            return ""
        config = self._timm().get_pretrained_cfg(self.model)
        return f"{config.architecture}.{config.tag}"

    def parts(self, example: Tensor, n_classes: int) -> tuple[nn.Module, None]:
        require_images(example, self.title)
        download = self.pretrained and self.weights is None
        try:
            # With num_classes=0 timm's nets return pooled features.
            model = self._timm().create_model(self.model, pretrained=download, num_classes=0, in_chans=len(example))
        except UserError:
            raise
        except Exception as error:  # the hub, the network and the nets raise different exceptions
            reason = " ".join(str(error).split()).rstrip(".")[:200]
            raise UserError(
                f"{self.title} cannot be made ({reason}); give a local file with ",
                Setting("net.weights", "FILE"),
                ", or another net.",
            ) from None
        if self.weights is not None:
            load_weights(model, self.weights)
        return model, None

    def _timm(self) -> Any:
        timm = library(self.library, extra=self.extra)
        if not timm.is_model(self.model):
            raise unknown("net of timm", self.model, timm.list_models())
        return timm


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
        names = {name for name in dir(nets) if callable(getattr(nets, name)) and not name.startswith("_")}
        if self.model not in names:
            raise unknown("net of MONAI", self.model, names)
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
