"""A net of one layer of random waves, for inputs of few dimensions."""

from typing import ClassVar, final

import torch
from pydantic import Field
from torch import Tensor, nn

from umix.models.net import Net, NetSettings


class Cosine(nn.Module):
    """The cosine of every number."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cos(x)


@final
class Fourier(NetSettings):
    """Random Fourier features, which are trained too, and a linear head."""

    name: ClassVar[str] = "fourier"

    width: int = Field(64, ge=1, description="number of waves")

    def build(self, example: Tensor, n_classes: int) -> Net:
        waves = nn.Sequential(nn.Flatten(), nn.Linear(example.numel(), self.width), Cosine())
        return Net(waves, nn.Linear(self.width, n_classes))
