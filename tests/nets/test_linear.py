"""The linear classifier."""

import torch

from umix.core.streams import torch_stream
from umix.nets.linear import Linear
from umix.nets.mlp import MLP


def built(settings, example):
    with torch_stream(0, "fit", "init"):
        return settings.build(example, 3)


def test_linear_is_an_mlp_without_hidden_layers():
    for example in (torch.rand(5), torch.rand(3, 4, 4)):
        linear, mlp = built(Linear(), example), built(MLP(hidden=()), example)
        assert all(torch.equal(a, b) for a, b in zip(linear.parameters(), mlp.parameters(), strict=True))
        assert torch.equal(linear(example[None]), mlp(example[None]))


def test_dropout_acts_in_training_only():
    net, x = built(Linear(dropout=0.5), torch.ones(64)), torch.ones(1, 64)
    assert torch.equal(net.eval().features(x), x)
    with torch.random.fork_rng():
        assert (net.train().features(x) == 0).any()
