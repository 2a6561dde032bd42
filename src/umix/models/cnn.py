"""A small convolutional net for small images."""

import math
from typing import Annotated, ClassVar, final

from pydantic import Field
from torch import Tensor, nn

from umix.errors import UserError
from umix.models.net import Net, NetSettings


@final
class CNN(NetSettings):
    """Stages of two 3×3 convolutions with group normalisation, halving the image between stages, then average pooling."""

    name: ClassVar[str] = "cnn"
    sized_by_options: ClassVar[bool] = True

    channels: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        (16, 32), min_length=1, max_length=1000, description="channels of each stage"
    )

    def build(self, example: Tensor, n_classes: int) -> Net:
        if example.dim() != 3:
            raise UserError(
                f"The net 'cnn' must be given images [channels, height, width], got {list(example.shape)}; try net=mlp."
            )
        layers: list[nn.Module] = []
        width = example.shape[0]
        for stage, channels in enumerate(self.channels):
            layers += [nn.MaxPool2d(2, ceil_mode=True)] if stage else []
            for _ in range(2):
                # Group normalisation does not depend on the other examples of a batch, as batch normalisation would.
                layers += [
                    nn.Conv2d(width, channels, 3, padding=1),
                    nn.GroupNorm(math.gcd(4, channels), channels),
                    nn.ReLU(),
                ]
                width = channels
        return Net(nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()), nn.Linear(width, n_classes))
