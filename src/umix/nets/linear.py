"""A linear classifier."""

from typing import ClassVar, final

from pydantic import Field
from torch import Tensor, nn

from umix.nets.net import Net, NetSettings


@final
class Linear(NetSettings):
    """A linear classifier of the input itself; also the head that is trained on the features of a frozen net."""

    name: ClassVar[str] = "linear"
    sized_by_options: ClassVar[bool] = True

    dropout: float = Field(0.0, ge=0, lt=1, description="share of inputs dropped in training")

    def build(self, example: Tensor, n_classes: int) -> Net:
        layers: list[nn.Module] = [nn.Flatten()] if example.dim() > 1 else []
        layers += [nn.Dropout(self.dropout)] if self.dropout else []
        return Net(nn.Sequential(*layers), nn.Linear(example.numel(), n_classes), is_linear=not layers)
