"""The method of a fit to rows in memory: its preset for tables, and what it cannot be used with."""

from collections.abc import Mapping
from typing import Any

from umix.bench.spec.presets import preset
from umix.errors import UserError
from umix.methods.method import Method
from umix.methods.registry import METHODS, method

#: The settings of methods that are parameters of the classifier too; they are UMIX's.
PARAMETERS = ("eta", "sigma", "alpha", "mixing", "per_example", "pool", "start", "length")


def chosen_method(name: str, settings: Mapping[str, Any] | None, *, groups: bool, by_gradients: bool) -> Method:
    """The method ``name`` with ``settings``, the others from the preset for tables.

    ``groups`` is whether groups are given, ``by_gradients`` whether a net is trained. A method that needs what is not there raises.
    """
    usual = preset("table", "default").get(name, {}) if isinstance(name, str) else {}
    own = {key: value for key, value in usual.items() if not isinstance(value, dict)}  # tables are of its net and fits
    recipe = method(name, **{**own, **options("settings", settings)})
    if not groups and (recipe.needs_groups or recipe.needs_val_groups or recipe.needs_some_groups):
        raise UserError(f"method={recipe.name!r} trains with groups, but none are given; pass groups=... with X and y.")
    if not by_gradients and recipe.needs_gradients:
        able = ", ".join(known for known, kind in METHODS.items() if not kind.needs_gradients)
        raise UserError(
            f"method={recipe.name!r} must train a net, because it takes gradient steps of its own or mixes examples, and an "
            f"estimator is only fitted to weighted rows; choose one of {able}, or leave estimator out."
        )
    mixing = sorted(set(settings or {}) & set(recipe.for_nets_only))
    if not by_gradients and mixing and (settings or {})[mixing[0]] != 0:
        raise UserError(
            f"settings must leave out {mixing[0]!r}: an estimator is fitted to rows as they are, so nothing is mixed; leave it or "
            "estimator out."
        )
    if not by_gradients and recipe.needs_some_groups:
        raise UserError(
            f"groups_from='few' must be used with a net, because groups are estimated from numbers, and an estimator's rows need "
            f"not be numbers; give {recipe.name} the groups of all rows, or leave estimator out."
        )
    return recipe


def all_settings(name: str, given: Mapping[str, Any] | None, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The settings ``given`` together with those ``parameters`` that are not None.

    Raises for a parameter that is no setting of the method ``name``, or that has another value among the settings.
    """
    settings = options("settings", given)
    set_ones = {key: value for key, value in parameters.items() if value is not None}
    known = METHODS.find(name).model_fields if set_ones else {}
    for key, value in set_ones.items():
        if key not in known:
            raise UserError(
                f"{key}={value!r} must be left out for method={name!r}, which has no such setting; a search over several methods "
                f"has a grid for each, [{{'method': ['umix'], {key!r}: [...]}}, {{'method': [{name!r}]}}]."
            )
        if key in settings and settings[key] != value:
            raise UserError(
                f"{key} must be given once, got {key}={value!r} and settings={{{key!r}: {settings[key]!r}}}; leave one out."
            )
    return {**settings, **set_ones}


def options(name: str, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options ``given`` under this ``name``; raises if they are no mapping."""
    if given is not None and not isinstance(given, Mapping):
        raise UserError(f"UMIXClassifier.{name} must be a dict of names and values, or None, got {given!r}.")
    return dict(given or {})
