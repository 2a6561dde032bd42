"""The nets umix knows by name: one line each."""

from typing import Any

from umix.errors import unknown
from umix.nets.cnn import CNN
from umix.nets.mlp import MLP
from umix.nets.net import NetSettings

NETS: dict[str, type[NetSettings]] = {net.name: net for net in (MLP, CNN)}


def net_settings(name: str, **options: Any) -> NetSettings:
    """The settings of the net called ``name``, not built yet.

    >>> net_settings("mlp", hidden=[64]).hidden
    (64,)
    """
    if name not in NETS:
        raise unknown("net", name, NETS)
    return NETS[name](**options)
