"""A net of ResNet-18's size, for timing only."""

import torch
from torch import Tensor, nn


class _Block(nn.Module):
    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(width_in, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, 1, 1, bias=False),
            nn.BatchNorm2d(width),
        )
        same = width_in == width and stride == 1
        self.skip = nn.Identity() if same else nn.Conv2d(width_in, width, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.main(x) + self.skip(x))


def resnet_body() -> nn.Sequential:
    """Eight blocks of two convolutions, 64 to 512 channels, then pooling: 11 million parameters."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    width = 64
    for stage, wider in enumerate((64, 128, 256, 512)):
        layers += [_Block(width, wider, 1 if stage == 0 else 2), _Block(wider, wider, 1)]
        width = wider
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
