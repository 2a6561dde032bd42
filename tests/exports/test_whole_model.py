import numpy as np
import pytest
import torch

from umix.core.decisions import decide
from umix.exports.preprocessing import Ready, TensorInput
from umix.exports.whole_model import WholeModel
from umix.nets.mlp import Linear


@pytest.mark.parametrize("n_classes", [2, 3])
def test_biases_decide_the_label_and_leave_the_probabilities(n_classes: int) -> None:
    torch.manual_seed(0)
    net = Linear().build(torch.zeros(4), n_classes)
    x, biases = torch.randn(50, 4), np.linspace(0.0, 1.5, n_classes)
    ready = Ready(TensorInput("x", "float32", ("n", 4), "ready"), [])
    label, probabilities, logits = WholeModel(ready, net, biases)(x)
    assert torch.equal(logits, net(x))
    assert torch.equal(label, decide(logits, torch.from_numpy(biases)))
    assert not torch.equal(label, logits.argmax(dim=1))
    assert torch.equal(probabilities, logits.softmax(dim=1))
