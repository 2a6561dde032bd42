"""Settings given as Python values, in the form that specs take."""

from collections.abc import Mapping
from typing import Any

from umix.errors import UserError


def flat_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """``{"fit": {"epochs": 5}}`` as ``{"fit.epochs": 5}``; other values, and tables inside of a part, stay as they are.

    >>> flat_settings({"eta": 3, "fit": {"epochs": 5}})
    {'eta': 3, 'fit.epochs': 5}
    """
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping) and "." not in key:
            flat |= {f"{key}.{name}": inner for name, inner in value.items()}
        else:
            flat[key] = value
    return flat


def net_setting(net: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """The settings of a net given as its name, or as options with its ``name`` among them."""
    if net is None:
        return {}
    if not isinstance(net, str | Mapping):
        raise UserError(
            f"net must be a name or a dict of options with the name among them, got {type(net).__name__}; an estimator as an "
            "object goes to umix.UMIXClassifier(estimator=...)."
        )
    return {"net": net} if isinstance(net, str) else flat_settings({"net": net})
