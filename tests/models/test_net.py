"""Every net is a head on features, and its first parameters come from a named stream."""

import pytest
import torch
from torch import nn

from umix.core.streams import torch_stream
from umix.models.cnn import CNN
from umix.models.mlp import MLP
from umix.models.net import Net, NetSettings

EXAMPLE = torch.zeros(2, 8, 8)
EVERY_NET = pytest.mark.parametrize(
    "settings",
    [MLP(hidden=()), MLP(hidden=(8,)), MLP(hidden=(8, 4), dropout=0.5), CNN(channels=(4,)), CNN(channels=(4, 6))],
    ids=["linear", "mlp", "dropout", "one stage", "two stages"],
)


def _build(settings, seed=0):
    with torch_stream(seed, "fit", "init"):
        return settings.build(EXAMPLE, 3)


def _images(n=5):
    return torch.randn(n, *EXAMPLE.shape, generator=torch.Generator().manual_seed(0))


@EVERY_NET
def test_forward_is_head_of_features(settings):
    net, x = _build(settings).eval(), _images()
    assert torch.equal(net(x), net.head(net.features(x)))


@EVERY_NET
@pytest.mark.parametrize("n", [0, 1, 5])
def test_features_and_logits_are_a_row_per_example(settings, n):
    net = _build(settings).eval()
    assert net(_images(n)).shape == (n, 3)
    assert net.features(_images(n)).shape == (n, net.head.in_features)


@EVERY_NET
def test_an_example_means_the_same_alone_as_in_a_batch(settings):
    net, x = _build(settings).eval(), _images()
    torch.testing.assert_close(torch.cat([net(row[None]) for row in x]), net(x), atol=1e-5, rtol=1e-5)


@EVERY_NET
def test_the_same_stream_initialises_the_same_net(settings):
    first, second, third = _build(settings), _build(settings), _build(settings, seed=1)
    pairs = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    assert all(torch.equal(*pair) for pair in pairs)
    assert not torch.equal(first.head.weight, third.head.weight)


@EVERY_NET
def test_initialising_under_a_stream_leaves_the_global_generator_alone(settings):
    before = torch.get_rng_state()
    _build(settings)
    assert torch.equal(torch.get_rng_state(), before)


@EVERY_NET
def test_every_parameter_gets_a_gradient(settings):
    net = _build(settings)
    with torch_stream(0, "fit", "noise"):
        net(_images()).square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in net.parameters())


@EVERY_NET
def test_building_does_not_touch_the_example(settings):
    example = _images(1)[0]
    before = example.clone()
    settings.build(example, 2)
    assert torch.equal(example, before)


def test_a_net_is_made_of_any_body_and_head():
    net = Net(nn.Flatten(), nn.Linear(4, 2))
    x = torch.arange(8.0).view(2, 2, 2)
    assert torch.equal(net.features(x), x.view(2, 4))
    assert torch.equal(net(x), net.head(x.view(2, 4)))


def test_net_settings_that_cannot_build_cannot_be_made():
    class Half(NetSettings):
        name = "half"

    with pytest.raises(TypeError, match="abstract"):
        Half()
