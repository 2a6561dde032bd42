"""Where to look for hyperparameters: the ranges that come with umix, and draws from them."""

import math
import tomllib
from functools import cache
from importlib import resources
from typing import Any, final

import numpy as np
from pydantic import Field

from umix.settings import Settings


@final
class Range(Settings):
    """A stretch of numbers; with ``log`` the logarithm is uniform."""

    low: float
    high: float
    log: bool = Field(False)

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
