"""Nets of timm, such as ``timm:convnext_tiny.in12k_ft_in1k``."""

from typing import Any, ClassVar, final

from pydantic import Field
from torch import Tensor, nn

from umix.errors import Setting, UserError, unknown
from umix.nets.backbone import file_content, require_images
from umix.nets.library import library
from umix.nets.provider import LibraryNet
from umix.nets.weight_files import load_weights


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
            return file_content(self.weights)
        if not self.pretrained:
            return ""
        known = self._timm().get_pretrained_cfg(self.model)
        return f"{known.architecture}.{known.tag}"

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
