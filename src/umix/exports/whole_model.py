"""Preprocessing, net and decision as one module: what is exported."""

from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from umix.core.decisions import decide
from umix.exports.preprocessing import Preprocessing
from umix.nets.net import Net

#: The outputs of an exported model, in order. The first is the place of the class among the classes; ONNX gives its name.
OUTPUTS = ("label", "probabilities", "logits")


@final
class WholeModel(nn.Module):
    """From the tensors that ``preprocessing`` takes to label [n], probabilities and logits [n, classes], as ``umix predict`` does.

    ``biases`` [classes] decide the label; the probabilities are those of the net.
    """

    biases: Tensor

    def __init__(self, preprocessing: Preprocessing, net: Net, biases: NDArray[np.float64]) -> None:
        super().__init__()
        self.preprocessing = preprocessing
        self.net = net
        self.register_buffer("biases", torch.from_numpy(biases))
        self.eval()

    def forward(self, *tensors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        logits = self.net(self.preprocessing(*tensors))
        return decide(logits, self.biases), logits.softmax(dim=1), logits
