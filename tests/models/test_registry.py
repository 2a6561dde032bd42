"""Nets are found by name, and a wrong name is answered with the right one."""

import tomllib
from pathlib import Path

import pytest

from umix.errors import UserError
from umix.models.cnn import CNN
from umix.models.mlp import MLP
from umix.models.own import OwnNet
from umix.models.registry import NETS, net_kind, net_settings


def test_every_net_is_registered_under_its_own_name():
    assert all(net.name == name for name, net in NETS.items())
    assert {MLP, CNN} <= set(NETS.values())


def test_net_settings_take_their_options():
    assert net_settings("cnn", channels=[8]) == CNN(channels=(8,))
    assert net_settings("mlp") == MLP()


def test_an_unknown_net_gets_the_nearest_known_one():
    with pytest.raises(UserError, match=r"^Unknown net 'mpl'; did you mean 'mlp'\?"):
        net_settings("mpl")


def test_an_unknown_option_of_a_net_gets_the_nearest_known_one():
    with pytest.raises(UserError, match=r"^Unknown setting of net 'hiden'; did you mean 'hidden'\?"):
        net_settings("mlp", hiden=(3,))


def test_the_library_of_every_net_is_in_the_extra_that_it_names():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for net in NETS.own_classes.values():
        if net.library:
            assert any(text.startswith(net.library) for text in project["optional-dependencies"][net.extra])


def test_a_net_is_found_by_the_name_that_it_is_listed_under():
    assert {net.usage(): net_kind(net.usage())[0] for net in NETS.values()} == {
        net.usage(): net for net in NETS.values()
    }


@pytest.mark.parametrize("name", ["hf", "hf:", "own", "my-nets:small", "nets:", ":small", "mlp:"])
def test_half_a_name_is_no_net(name):
    with pytest.raises(UserError, match=r"^Unknown net"):
        net_kind(name)


def test_a_module_may_be_called_like_a_net_of_umix():
    assert net_kind("mlp:small") == (OwnNet, {"factory": "mlp:small"})
