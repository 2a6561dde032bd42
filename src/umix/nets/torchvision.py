"""Nets of torchvision: ``torchvision:resnet50`` with its ImageNet weights, from its cache, a download or a local file."""

from typing import Any, ClassVar, final

from pydantic import Field
from torch import Tensor, nn

from umix.errors import Setting, UserError, unknown
from umix.nets.backbone import file_content, require_images, without_last_layer
from umix.nets.library import library
from umix.nets.provider import LibraryNet
from umix.nets.weight_files import load_weights


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
            return file_content(self.weights)
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
