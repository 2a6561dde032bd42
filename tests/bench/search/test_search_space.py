"""Search ranges lie within what the methods allow."""

import tomllib
from importlib import resources

import numpy as np
import pytest

from umix.bench.search.search_space import draw_settings, search_space
from umix.methods.registry import METHODS


@pytest.mark.parametrize("name", METHODS)
def test_every_draw_is_a_legal_setting_of_its_method(name: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        METHODS[name](**draw_settings(search_space(name), rng))


@pytest.mark.parametrize("name", METHODS)
def test_every_method_with_hyperparameters_has_search_ranges(name: str) -> None:
    assert bool(search_space(name)) == bool(METHODS[name].model_fields)


def test_no_range_is_of_an_unknown_method() -> None:
    text = (resources.files("umix") / "presets" / "search.toml").read_text(encoding="utf-8")
    assert set(tomllib.loads(text)) <= set(METHODS)


def test_draws_are_decided_by_the_stream() -> None:
    space = search_space("umix")
    first, second = (draw_settings(space, np.random.default_rng(1)) for _ in range(2))
    assert first == second
