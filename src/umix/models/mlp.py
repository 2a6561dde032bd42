"""Fully connected nets, from a linear classifier upwards."""

from typing import Annotated, ClassVar, final

from pydantic import Field
from torch import Tensor, nn

from umix.models.net import Net, NetSettings


@final
class MLP(NetSettings):
    """Linear layers with ReLU between them; no hidden layers make a linear classifier."""

    name: ClassVar[str] = "mlp"
    sized_by_options: ClassVar[bool] = True

    hidden: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        (128, 128), max_length=1000, description="widths of the hidden layers; empty for a linear classifier"
    )
    dropout: float = Field(0.0, ge=0, lt=1, description="share of hidden units dropped in training")

    def build(self, example: Tensor, n_classes: int) -> Net:
        layers: list[nn.Module] = [nn.Flatten()] if example.dim() > 1 else []
        width = example.numel()
        for hidden in self.hidden:
            layers += [nn.Linear(width, hidden), nn.ReLU()]
            if self.dropout:
                layers.append(nn.Dropout(self.dropout))
            width = hidden
        return Net(nn.Sequential(*layers), nn.Linear(width, n_classes), is_linear=not layers)


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
