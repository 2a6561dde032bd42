"""The paper's numbers."""

import json
from importlib import resources

import pytest

from umix.core.statistics import Spread
from umix.methods.registry import METHODS
from umix.reports.published import published, published_for_rule


def test_numbers_are_rates_with_deviations() -> None:
    assert published("waterbirds", "erm") == {"average": Spread(0.97, 0.002), "worst": Spread(0.637, 0.019)}
    assert published("civilcomments", "umix")["worst"] == Spread(0.701, 0.009)
    assert set(published("camelyon17", "lisa")) == {"average"}


def test_what_the_paper_does_not_have_is_empty() -> None:
    assert published("waterbirds", "dfr") == {}
    assert published("colored_digits", "umix") == {}
    assert published_for_rule("waterbirds", "erm", "worst") == {}
    assert published_for_rule("waterbirds", "umix", "last") == {}


def test_selection_with_known_groups_is_the_first_table() -> None:
    for task in ("waterbirds", "celeba"):
        for rate, spread in published_for_rule(task, "umix", "worst").items():
            assert spread.mean == pytest.approx(published(task, "umix")[rate].mean)
    assert published_for_rule("celeba", "umix", "average")["worst"].mean == 0.846


def test_every_published_method_is_one_that_can_be_run() -> None:
    content = json.loads((resources.files("umix.reports") / "published.json").read_text())
    assert set(content["methods"]) <= set(METHODS)
    assert content["unit"] == "percent"
