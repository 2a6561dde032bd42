"""Where to look for hyperparameters: the ranges that come with umix, and draws from them."""

import math
import tomllib
from functools import cache
from importlib import resources
from typing import Any, final

import numpy as np
from pydantic import Field, model_validator

from umix.errors import Setting, UserError
from umix.settings import Settings


@final
class Range(Settings):
    """A stretch of numbers; with ``log`` the logarithm is uniform."""

    low: float
    high: float
    log: bool = Field(False)

    @model_validator(mode="after")
    def _is_a_stretch(self) -> "Range":
        if not self.low < self.high or (self.log and self.low <= 0):
            raise UserError(
                f"A search range must have low < high, and low > 0 on a log scale, got {self.low:g}:{self.high:g}."
            )
        return self

    def draw(self, rng: np.random.Generator) -> float:
        if self.log:
            return math.exp(rng.uniform(math.log(self.low), math.log(self.high)))
        return float(rng.uniform(self.low, self.high))


#: What may be tried for each setting of a method: a range, or a list of values.
SearchSpace = dict[str, Range | list[Any]]


@cache
def search_space(method: str) -> SearchSpace:
    """The search ranges of ``method``'s own hyperparameters; empty where it has none to search.

    >>> sorted(search_space("umix"))
    ['alpha', 'eta', 'length', 'sigma']
    """
    file = resources.files("umix") / "presets" / "search.toml"
    table = tomllib.loads(file.read_text(encoding="utf-8")).get(method, {})
    return {name: Range(**values) if isinstance(values, dict) else values for name, values in table.items()}


def draw_settings(space: SearchSpace, rng: np.random.Generator) -> dict[str, Any]:
    """One random setting of everything in ``space``; rounded to three digits so that it can be written down."""
    drawn = {}
    for name, values in space.items():
        if isinstance(values, Range):
            drawn[name] = float(f"{values.draw(rng):.3g}")
        else:
            drawn[name] = values[int(rng.integers(len(values)))]
    return drawn


def parse_range(text: str) -> tuple[str, Range]:
    """The setting and stretch of a text ``key=low:high`` or ``key=low:high:log``.

    >>> parse_range("eta=1:100:log")
    ('eta', Range(low=1.0, high=100.0, log=True))
    """
    key, _, stretch = text.partition("=")
    ends = stretch.split(":")
    try:
        low, high = (float(end) for end in ends[:2])
    except ValueError:
        low = high = math.nan
    if not key.strip() or math.isnan(low + high) or ends[2:] not in ([], ["log"]):
        raise UserError(Setting("range"), f" must be given key=low:high or key=low:high:log, got {text!r}.")
    return key.strip(), Range(low=low, high=high, log=len(ends) == 3)


def parse_choices(text: str) -> tuple[str, list[Any]]:
    """The setting and values of a text ``key=a,b,c``; values are numbers, true, false or texts.

    >>> parse_choices("sigma=0.5,1")
    ('sigma', [0.5, 1])
    """
    key, _, listed = text.partition("=")
    values = [part.strip() for part in listed.split(",") if part.strip()]
    if not key.strip() or not values:
        raise UserError(Setting("choices"), f" must be given key=a,b,c, got {text!r}.")
    return key.strip(), [_value(value) for value in values]


def _value(text: str) -> Any:
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    return value if isinstance(value, int | float | bool | str) else text
