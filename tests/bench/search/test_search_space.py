"""Search ranges lie within what the methods allow."""

from pathlib import Path
from typing import Any

import pytest

from umix.bench.search.search_plan import plan_search
from umix.bench.search.search_space import (
    SearchedSetting,
    parse_choices,
    parse_range,
    search_space,
    searched_settings,
    shared_stage,
)
from umix.bench.spec.run_spec import RunSpec
from umix.errors import UserError
from umix.methods.registry import METHODS
from umix.settings import Range


@pytest.mark.parametrize("name", METHODS)
def test_the_ends_of_every_range_are_legal_settings_of_its_method(name: str) -> None:
    for key, values in search_space(name).items():
        for value in (values.low, values.high) if isinstance(values, Range) else values:
            METHODS[name](**{key: value})


@pytest.mark.parametrize("name", METHODS)
def test_every_method_with_hyperparameters_has_search_ranges(name: str) -> None:
    chooses_itself = name == "best"  # its settings only limit the selection
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


def base(method: str = "umix", **settings: Any) -> RunSpec:
    return RunSpec(task="four_moons", method=method, settings=settings)


def test_a_default_may_lie_outside_of_what_is_searched() -> None:
    spec = RunSpec(task="waterbirds", method="umix", preset="paper")
    space = searched_settings(spec, {"eta": Range(low=1, high=90)})
    assert {key: (setting.default, setting.includes_default) for key, setting in space.items()} == {
        "umix.eta": (80, True),
        "umix.sigma": (0.5, True),
        "umix.alpha": (0.5, True),
        "umix.length": (50, False),
    }
    assert shared_stage(spec, space) == {"trajectory.epochs": 100}  # start 50, for its own window


def test_a_setting_left_to_be_found_automatically_is_searched_by_numbers() -> None:
    spec = base(uncertainty="trajectory")
    found = RunSpec(task="four_moons", method="umix", settings={"fit.epochs": 30, "umix.c": 1.0}, preset="default")
    automatic = searched_settings(spec, {})["umix.length"]
    assert (automatic.whole, automatic.values) == (True, [5, 10, 20])
    eta = SearchedSetting(Range(low=1, high=2), "auto", False)
    assert not eta.includes_default
    assert shared_stage(found, {"umix.length": SearchedSetting([5, 20], "auto", True)}) == {"trajectory.epochs": 20}


def test_baselines_that_are_left_open_are_searched_by_the_same_numbers_as_those_that_are_not() -> None:
    share, step = Range(low=0.05, high=0.8, log=True), Range(low=0.001, high=0.1, log=True)
    expected = {
        "jtt": {"identification_epochs": [1, 2, 3, 5, 10], "upweight": [2, 5, 10, 20, 50]},
        "cvar_dro": {"alpha": share},
        "chi2_dro": {"alpha": share},
        "group_dro": {"step_size": step},
    }
    for method, ranges in expected.items():
        file = RunSpec(task="four_moons", method=method, settings={}, preset="default")
        assert {key: searched_settings(file, {})[f"{method}.{key}"].values for key in ranges} == ranges
        left_open = base(method, **dict.fromkeys(ranges, "auto"))
        for key, values in ranges.items():
            others = {other: "auto" for other in ranges if other != key}
            searched = searched_settings(base(method, **others), {key: values})[f"{method}.{key}"]
            assert searched.values == values
        assert all(getattr(left_open.plan.method, key) == "auto" for key in ranges)


def test_what_is_set_is_not_searched_and_other_settings_may_be() -> None:
    space = searched_settings(base(eta=3), {"fit.lr": Range(low=1e-3, high=1e-1, log=True), "umix.sigma": [0, 1]})
    assert sorted(space) == ["fit.lr", "umix.alpha", "umix.length", "umix.sigma"]
    assert space["umix.sigma"].values == [0.0, 1.0]


def test_drawn_numbers_can_be_written_down_and_stay_in_their_range() -> None:
    setting = SearchedSetting(Range(low=0.012345, high=2.0), 0.5, False)
    assert setting.rounded(0.123456) == 0.123
    assert setting.rounded(0.012345) == 0.012345


def test_all_windows_share_a_first_stage_as_long_as_the_longest() -> None:
    spec = base()
    assert shared_stage(spec, searched_settings(spec, {"start": [0, 3], "length": [5, 20]})) == {
        "trajectory.epochs": 23
    }
    jtt = base("jtt")
    assert shared_stage(jtt, searched_settings(jtt, {})) == {"trajectory.epochs": 10}


def test_a_first_stage_that_is_the_same_for_all_is_left_alone() -> None:
    fixed = base(length=5)
    assert shared_stage(fixed, searched_settings(fixed, {})) == {}
    long = base(**{"trajectory.epochs": 50})
    assert shared_stage(long, searched_settings(long, {})) == {}
    ensemble = base(uncertainty="ensemble")
    assert shared_stage(ensemble, searched_settings(ensemble, {})) == {}
    none = base("group_dro")
    assert shared_stage(none, searched_settings(none, {})) == {}


def test_a_first_stage_that_is_too_short_is_refused() -> None:
    short = base(**{"trajectory.epochs": 10, "length": 5})
    with pytest.raises(UserError, match=r"trajectory\.epochs must be at least 20"):
        shared_stage(short, {"umix.length": SearchedSetting([5, 20], 5, True)})


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"etta": [1]}, "did you mean 'eta'"),
        ({"sigma": Range(low=0.5, high=2)}, r"umix\.sigma must be a number in \[0, 1\]"),
        ({"mixing": Range(low=0, high=1)}, "must be a number to have a range"),
        ({"mixing": ["input", "output"]}, r"umix\.mixing must be one of"),
        ({"sigma": ["much"]}, r"umix\.sigma must be a number"),
        ({"start": Range(low=0.5, high=2)}, "whole numbers as ends"),
        ({"net.name": ["mlp"]}, "cannot be searched"),
    ],
)
def test_an_illegal_range_is_said_in_words(own: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        searched_settings(base(), own)


def test_searched_and_set_at_once_is_refused_and_nothing_to_search_too() -> None:
    with pytest.raises(UserError, match="must be searched or set"):
        searched_settings(base(eta=3), {"eta": [1.0]})
    with pytest.raises(UserError, match="no setting left to search"):
        plan_search("four_moons", "erm")


@pytest.mark.parametrize("text", ["eta", "eta=1", "=1:2", "eta=1:b", "eta=1:2:lin", "eta=1:2:log:3", "eta=nan:2"])
def test_a_text_that_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="range= must be given"):
        parse_range(text)


@pytest.mark.parametrize("text", ["eta=2:1", "eta=0:1:log", "eta=1:1"])
def test_a_range_must_be_a_stretch(text: str) -> None:
    with pytest.raises(UserError, match="low < high"):
        parse_range(text)


def test_choices_are_numbers_truths_or_texts() -> None:
    assert parse_choices("k = 1, 0.5,true ,input,none") == ("k", [1, 0.5, True, "input", "none"])
    with pytest.raises(UserError, match="choices= must be given"):
        parse_choices("k=")


def test_a_search_with_trees_varies_the_trees_and_not_what_only_nets_use(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("x,y\n" + "\n".join(f"{k},{k % 2}" for k in range(40)))
    spec = RunSpec(task=str(table), method="umix", settings={"task.label": "y", "net": "trees", "eta": 1, "length": 2})
    assert list(searched_settings(spec, {})) == ["net.leaves", "net.depth", "net.learning_rate"]
