"""Fully connected nets against NumPy."""

import numpy as np
import pytest
import torch
from torch import nn

from umix.core.streams import torch_stream
from umix.errors import UserError
from umix.models.mlp import MLP, Linear


def _build(shape, n_classes=3, **options):
    with torch_stream(0, "fit", "init"):
        return MLP(**options).build(torch.zeros(shape), n_classes).double()


def _inputs(*shape):
    return torch.from_numpy(np.random.default_rng(0).normal(size=shape))


@pytest.mark.parametrize("shape", [(4,), (2, 3), (1, 2, 2)], ids=str)
def test_without_hidden_layers_the_net_is_linear(shape):
    net, x = _build(shape, hidden=()), _inputs(5, *shape)
    expected = x.flatten(1).numpy() @ net.head.weight.detach().numpy().T + net.head.bias.detach().numpy()
    np.testing.assert_allclose(net(x).detach().numpy(), expected, atol=1e-12)
    assert torch.equal(net.features(x), x.flatten(1))
    assert sum(p.numel() for p in net.parameters()) == (x[0].numel() + 1) * 3


@pytest.mark.parametrize("shape", [(4,), (2, 3)], ids=str)
def test_hidden_layers_are_affine_maps_with_relu_between(shape):
    net, x = _build(shape, hidden=(6, 5)), _inputs(7, *shape)
    z = x.flatten(1).numpy()
    for layer in (layer for layer in net.body if isinstance(layer, nn.Linear)):
        z = np.maximum(z @ layer.weight.detach().numpy().T + layer.bias.detach().numpy(), 0)
    np.testing.assert_allclose(net.features(x).detach().numpy(), z, atol=1e-12)
    assert z.shape == (7, 5)


def test_the_hidden_widths_are_those_asked_for():
    net = _build((4,), hidden=(6, 5))
    shapes = [tuple(p.shape) for p in net.parameters()]
    assert shapes == [(6, 4), (6,), (5, 6), (5,), (3, 5), (3,)]


def test_dropout_acts_in_training_only_and_from_the_stream():
    net, x = _build((4,), hidden=(50,), dropout=0.5), _inputs(6, 4)
    draws = []
    for epoch in (0, 0, 1):
        with torch_stream(0, "fit", "dropout", epoch):
            draws.append(net.train()(x))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    assert torch.equal(net.eval()(x), net.eval()(x))


def test_dropout_drops_its_share_of_hidden_units():
    net, x = _build((4,), hidden=(400,), dropout=0.25), _inputs(200, 4)
    alive = net.eval().features(x) > 0
    with torch_stream(0, "fit", "dropout"):
        kept = net.train().features(x)[alive] > 0
    assert kept.double().mean().item() == pytest.approx(0.75, abs=0.01)


def test_without_dropout_training_and_evaluation_are_the_same():
    net, x = _build((4,)), _inputs(3, 4)
    assert torch.equal(net.train()(x), net.eval()(x))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"hidden": (8, 0)}, r"^net\.hidden must be a list of whole numbers in \[1, inf\), got 0\.$"),
        ({"hidden": "wide"}, r"^net\.hidden must be a list of whole numbers in \[1, inf\), got 'wide'\.$"),
        ({"dropout": 1.0}, r"^net\.dropout must be a number in \[0, 1\), got 1\.0\.$"),
    ],
    ids=["no width", "text", "all dropped"],
)
def test_wrong_options_are_refused(options, sentence):
    with pytest.raises(UserError, match=sentence):
        MLP(**options)


def test_a_net_says_that_it_is_linear_only_if_it_is_one_layer_on_inputs_as_they_are():
    assert _build((4,), hidden=()).is_linear
    assert not _build((2, 2), hidden=()).is_linear  # inputs are flattened first
    assert not _build((4,), hidden=(2,)).is_linear
    assert Linear().build(torch.zeros(4), 2).is_linear
    assert not Linear(dropout=0.5).build(torch.zeros(4), 2).is_linear


def test_linear_is_an_mlp_without_hidden_layers():
    for example in (torch.rand(5), torch.rand(3, 4, 4)):
        nets = []
        for settings in (Linear(), MLP(hidden=())):
            with torch_stream(0, "fit", "init"):
                nets.append(settings.build(example, 3))
        linear, mlp = nets
        assert all(torch.equal(a, b) for a, b in zip(linear.parameters(), mlp.parameters(), strict=True))
        assert torch.equal(linear(example[None]), mlp(example[None]))
