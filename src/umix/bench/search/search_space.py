"""Search ranges of hyperparameters, random draws from them, and ranges given as text."""

import math
from inspect import get_annotations
from typing import Any

import numpy as np
from pydantic.fields import FieldInfo

from umix.errors import Setting, UserError
from umix.methods.registry import METHODS
from umix.settings import Range, Searched, Settings
from umix.toml_text import parse_value

#: The values that a search may try for each setting: a range, or a list of values.
SearchSpace = dict[str, Range | list[Any]]


def search_space(method: str) -> SearchSpace:
    """The search ranges of ``method``'s own hyperparameters; empty if it has none to search.

    They are metadata of its fields (``between`` and ``among`` of ``umix.settings``). The class's own
    fields come first, then those of its parents. The order matters: it decides which random numbers
    a setting is drawn with.

    >>> list(search_space("umix"))
    ['eta', 'sigma', 'alpha', 'length']
    """
    return searched_fields(METHODS[method])


def searched_fields(kind: type[Settings]) -> SearchSpace:
    """The search ranges of the settings ``kind``, in that order; ``among`` and ``between`` of ``umix.settings`` gave them."""
    names = dict.fromkeys(
        name for owner in kind.__mro__ for name in get_annotations(owner) if name in kind.model_fields
    )
    ranges = {name: _searched(kind.model_fields[name]) for name in names}
    return {name: values for name, values in ranges.items() if values is not None}


def _searched(field: FieldInfo) -> Range | list[Any] | None:
    values = next((item.values for item in field.metadata if isinstance(item, Searched)), None)
    return list(values) if isinstance(values, tuple) else values


def draw(interval: Range, rng: np.random.Generator) -> float:
    """A random number in ``interval``."""
    if interval.log:
        return math.exp(rng.uniform(math.log(interval.low), math.log(interval.high)))
    return float(rng.uniform(interval.low, interval.high))


def draw_settings(space: SearchSpace, rng: np.random.Generator) -> dict[str, Any]:
    """A random value for every setting in ``space``, rounded to three digits so that it is easy to write down."""
    drawn = {}
    for name, values in space.items():
        if isinstance(values, Range):
            drawn[name] = float(f"{draw(values, rng):.3g}")
        else:
            drawn[name] = values[int(rng.integers(len(values)))]
    return drawn


def parse_range(text: str) -> tuple[str, Range]:
    """The setting and range in a text ``key=low:high`` or ``key=low:high:log``.

    >>> parse_range("eta=1:100:log")
    ('eta', Range(low=1.0, high=100.0, log=True))
    """
    key, _, interval = text.partition("=")
    ends = interval.split(":")
    try:
        low, high = (float(end) for end in ends[:2])
    except ValueError:
        low = high = math.nan
    if not key.strip() or math.isnan(low + high) or ends[2:] not in ([], ["log"]):
        raise UserError(Setting("range"), f" must be given key=low:high or key=low:high:log, got {text!r}.")
    return key.strip(), Range(low=low, high=high, log=len(ends) == 3)


def parse_choices(text: str) -> tuple[str, list[Any]]:
    """The setting and values in a text ``key=a,b,c``; values are numbers, true, false or texts.

    >>> parse_choices("sigma=0.5,1")
    ('sigma', [0.5, 1])
    """
    key, _, listed = text.partition("=")
    values = [part.strip() for part in listed.split(",") if part.strip()]
    if not key.strip() or not values:
        raise UserError(Setting("choices"), f" must be given key=a,b,c, got {text!r}.")
    return key.strip(), [_value(value) for value in values]


def _value(text: str) -> Any:
    value = parse_value(text)
    return value if isinstance(value, int | float | bool | str) else text
