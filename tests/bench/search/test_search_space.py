"""Search ranges lie within what the methods allow."""

import numpy as np
import pytest

from umix.bench.search.search_space import draw_settings, search_space
from umix.methods.registry import METHODS
from umix.settings import Range


@pytest.mark.parametrize("name", METHODS)
def test_every_draw_is_a_legal_setting_of_its_method(name: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        METHODS[name](**draw_settings(search_space(name), rng))


@pytest.mark.parametrize("name", METHODS)
def test_every_method_with_hyperparameters_has_search_ranges(name: str) -> None:
    chooses_itself = name == "best"  # its settings only limit the race
    assert bool(search_space(name)) == (bool(METHODS[name].model_fields) and not chooses_itself)


def test_the_ranges_are_metadata_of_the_fields_of_the_method() -> None:
    assert search_space("umix") == {
        "eta": Range(low=2, high=100, log=True),
        "sigma": [0.5, 1.0],
        "alpha": [0.2, 0.5, 1.5],
        "length": [5, 10, 20],
    }


def test_a_method_may_search_an_inherited_setting_elsewhere() -> None:
    space = search_space("lisa_umix")
    assert (space["eta"], space["length"]) == (Range(low=0.5, high=50, log=True), [5, 10])
    assert list(space) == ["eta", "same_label", "alpha", "length"]


def test_draws_are_decided_by_the_stream() -> None:
    space = search_space("umix")
    first, second = (draw_settings(space, np.random.default_rng(1)) for _ in range(2))
    assert first == second
