"""Stacks: copies of a net, whose members compute and learn what nets of their own would."""

import pytest
import torch
from torch import nn

from umix.models.cnn import CNN
from umix.models.mlp import MLP, Linear
from umix.models.stacked import can_stack, stack_of

NETS = [Linear(), MLP(hidden=(7,)), MLP(hidden=(7, 5)), MLP(hidden=())]


@pytest.mark.parametrize("settings", NETS, ids=repr)
def test_every_member_predicts_as_the_net_it_copies(settings):
    net, x = settings.build(torch.zeros(4), 3), torch.randn(6, 4)
    assert can_stack(net)
    logits = stack_of(net, 5)(x)
    assert logits.shape == (5, 6, 3)
    for of_member in logits:
        torch.testing.assert_close(of_member, net(x))


@pytest.mark.parametrize("settings", NETS, ids=repr)
def test_members_learn_what_nets_of_their_own_would(settings):
    """Three steps with different weights for each member, against three nets trained one by one."""
    torch.manual_seed(0)
    net, x, y = settings.build(torch.zeros(4), 3), torch.randn(8, 4), torch.randint(0, 3, (8,))
    w = torch.rand(3, 8)
    stacked = stack_of(net, 3)
    optimizer = torch.optim.AdamW(stacked.parameters(), 0.05)
    for _ in range(3):
        losses = nn.functional.cross_entropy(stacked(x).flatten(0, 1), y.repeat(3), reduction="none").view(3, 8)
        optimizer.zero_grad()
        (w * losses).sum().backward()
        optimizer.step()
    for member in range(3):
        alone = settings.build(torch.zeros(4), 3)
        alone.load_state_dict(net.state_dict())
        optimizer = torch.optim.AdamW(alone.parameters(), 0.05)
        for _ in range(3):
            losses = nn.functional.cross_entropy(alone(x), y, reduction="none")
            optimizer.zero_grad()
            (w[member] * losses).sum().backward()
            optimizer.step()
        torch.testing.assert_close(stacked(x)[member], alone(x), rtol=1e-4, atol=1e-5)


def test_inputs_with_axes_are_flattened_first():
    net, x = MLP(hidden=(5,)).build(torch.zeros(2, 3), 2), torch.randn(4, 2, 3)
    torch.testing.assert_close(stack_of(net, 2)(x)[1], net(x))


def test_nets_with_other_layers_cannot_be_stacked():
    assert not can_stack(CNN(channels=(4,)).build(torch.zeros(3, 8, 8), 2))


def test_a_net_with_frozen_layers_cannot_be_stacked():
    net = MLP(hidden=(5,)).build(torch.zeros(4), 2)
    net.body[0].weight.requires_grad_(False)
    assert not can_stack(net)


def test_dropout_is_drawn_for_every_member():
    torch.manual_seed(0)
    net = MLP(hidden=(32,), dropout=0.5).build(torch.zeros(4), 2)
    logits = stack_of(net, 2).train()(torch.ones(3, 4))
    assert not torch.equal(logits[0], logits[1])
