"""The small convolutional net takes images of any size and nothing else."""

import pytest
import torch

from umix.core.streams import torch_stream
from umix.errors import UserError
from umix.models.cnn import CNN


def _build(shape, **options):
    with torch_stream(0, "fit", "init"):
        return CNN(**options).build(torch.zeros(shape), 3).eval()


def _images(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("shape", [(), (4,), (8, 8), (1, 2, 8, 8)], ids=str)
def test_what_is_no_image_is_refused(shape):
    with pytest.raises(UserError) as caught:
        CNN().build(torch.zeros(shape), 2)
    assert str(caught.value) == (
        f"The net 'cnn' must be given images [channels, height, width], got {list(shape)}; try net=mlp."
    )


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 8, 8), (3, 7, 5), (1, 1, 9)], ids=str)
@pytest.mark.parametrize("channels", [(4,), (3, 5), (8, 4, 2)], ids=str)
def test_images_of_any_size_get_features_as_wide_as_the_last_stage(shape, channels):
    net = _build(shape, channels=channels)
    features = net.features(_images(4, *shape))
    assert features.shape == (4, channels[-1])
    assert net.head(features).shape == (4, 3)
    assert features.isfinite().all()


def test_every_stage_halves_the_image():
    net, sizes = _build((2, 8, 8), channels=(4, 4, 4)), []
    for layer in net.body:
        if isinstance(layer, torch.nn.Conv2d):
            layer.register_forward_hook(lambda *call: sizes.append(tuple(call[2].shape[2:])))
    net(_images(1, 2, 8, 8))
    assert sizes == [(8, 8), (8, 8), (4, 4), (4, 4), (2, 2), (2, 2)]


def test_training_and_evaluation_are_the_same_even_for_a_batch_of_one():
    net, x = _build((2, 8, 8)), _images(1, 2, 8, 8)
    assert torch.equal(net.train()(x), net.eval()(x))


def test_the_net_sees_the_colour_channels():
    net, x = _build((2, 8, 8)), _images(1, 2, 8, 8)
    assert not torch.allclose(net(x), net(x.flip(1)))


@pytest.mark.parametrize(
    ("channels", "got"), [((), "()"), ((4, 0), "0"), ("deep", "'deep'")], ids=["no stage", "no channels", "text"]
)
def test_wrong_channels_are_refused(channels, got):
    with pytest.raises(UserError) as caught:
        CNN(channels=channels)
    rule = "a list of whole numbers in [1, inf), at least 1 of them"
    assert str(caught.value) == f"net.channels must be {rule}, got {got}."
