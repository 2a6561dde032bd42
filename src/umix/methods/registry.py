"""The methods umix knows by name: one line each."""

from typing import Any

from umix.errors import unknown
from umix.methods.erm import ERM
from umix.methods.group_dro import GroupDRO
from umix.methods.lisa import LISA
from umix.methods.method import Method
from umix.methods.mixup import InGroupMixup, Mixup
from umix.methods.umix import UMIX

_KINDS: tuple[type[Method], ...] = (
    ERM,
    UMIX,
    GroupDRO,
    Mixup,
    InGroupMixup,
    LISA,
)

METHODS: dict[str, type[Method]] = {kind.name: kind for kind in _KINDS}


def method(name: str, **settings: Any) -> Method:
    """The method called ``name`` with these hyperparameters.

    >>> method("umix", eta=20, sigma=0).eta
    20.0
    """
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    return METHODS[name](**settings)
