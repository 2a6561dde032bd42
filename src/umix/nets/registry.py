"""The nets umix knows by name, and the libraries that know others: one line each."""

from typing import Any

from umix.errors import unknown
from umix.nets.backbone import Backbone
from umix.nets.cnn import CNN
from umix.nets.hf import HuggingFace
from umix.nets.linear import Linear
from umix.nets.mlp import MLP
from umix.nets.monai import Monai
from umix.nets.net import NetSettings
from umix.nets.own import OwnNet
from umix.nets.timm import Timm
from umix.nets.torchvision import TorchVision

NETS: dict[str, type[NetSettings]] = {net.name: net for net in (MLP, CNN, Linear)}

#: What may stand before the colon of ``provider:name``, and the library it takes.
PROVIDERS: dict[str, tuple[type[Backbone], str]] = {
    "hf": (HuggingFace, "transformers"),
    "monai": (Monai, "monai"),
    "torchvision": (TorchVision, "torchvision"),
    "timm": (Timm, "timm"),
}


def net_kind(name: str) -> tuple[type[NetSettings], dict[str, Any]]:
    """The class of the net called ``name`` and the options that the name stands for.

    A name is one of ``NETS``, ``provider:name``, or ``module.path:factory`` for a net of one's own.

    >>> net_kind("hf:distilbert-base-uncased")[1]
    {'model': 'distilbert-base-uncased'}
    """
    if name in NETS:
        return NETS[name], {}
    provider, colon, rest = name.partition(":")
    if colon and rest and provider in PROVIDERS:
        return PROVIDERS[provider][0], {"model": rest}
    if rest.isidentifier() and all(part.isidentifier() for part in provider.split(".")):
        return OwnNet, {"factory": name}
    raise unknown("net", name, [*NETS, *(f"{provider}:NAME" for provider in PROVIDERS), "MODULE:FACTORY"])


def net_settings(name: str, **options: Any) -> NetSettings:
    """The settings of the net called ``name``, not built yet.

    >>> net_settings("mlp", hidden=[64]).hidden
    (64,)
    """
    kind, implied = net_kind(name)
    return kind(**options, **implied)
