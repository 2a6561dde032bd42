"""Nets are found by name, and a wrong name is answered with the right one."""

import pytest

from umix.errors import UserError
from umix.nets.cnn import CNN
from umix.nets.mlp import MLP
from umix.nets.registry import NETS, net_settings


def test_every_net_is_registered_under_its_own_name():
    assert all(net.name == name for name, net in NETS.items())
    assert {MLP, CNN} <= set(NETS.values())


def test_net_settings_take_their_options():
    assert net_settings("cnn", channels=[8]) == CNN(channels=(8,))
    assert net_settings("mlp") == MLP()


def test_an_unknown_net_gets_the_nearest_known_one():
    with pytest.raises(
        UserError, match=r"^Unknown net 'mpl'; did you mean 'mlp'\? Known: MODULE:FACTORY, cnn, hf:NAME, "
    ):
        net_settings("mpl")


def test_an_unknown_option_of_a_net_gets_the_nearest_known_one():
    with pytest.raises(UserError, match=r"^Unknown setting of net 'hiden'; did you mean 'hidden'\?"):
        net_settings("mlp", hiden=(3,))
