"""The data drawn: rates, intervals, seeds, epochs, densities and weights are those of the records."""

from collections.abc import Callable

import numpy as np
import pytest

from umix.bench.runs.record import RunRecord
from umix.core.statistics import wilson
from umix.reports.charts.bars import group_bars, group_rows, lowest_groups
from umix.reports.charts.curves import curve_rows, curves, selected_epochs
from umix.reports.charts.palette import COLOURS, METHOD_COLOURS, colours
from umix.reports.charts.tradeoff import tradeoff, tradeoff_rows
from umix.reports.charts.uncertainty import densities, density, density_rows, weight_rows, weights

Runs = dict[str, dict[str, list[RunRecord]]]


def test_bars_are_means_over_seeds_with_wilsons_interval(runs: Runs) -> None:
    rows = {(row["group"], row["method"]): row for row in group_rows(runs["toy"], None)}
    erm = rows["b", "erm"]  # 5 and 7 of 10
    assert erm["rate"] == 60.0
    assert erm["low"] == pytest.approx(50 * (wilson(5, 10).low + wilson(7, 10).low), abs=0.01)
    assert erm["size"] == 10
    assert erm["seeds"] == 2
    assert len(rows) == 4


def test_bars_are_drawn_from_the_rows_in_the_methods_colours(runs: Runs) -> None:
    figure = group_bars("toy", group_rows(runs["toy"], None), colours(["erm", "umix"], METHOD_COLOURS), kind="group")
    spec = figure.on_page()
    (drawn,) = spec["datasets"].values() if "datasets" in spec else (spec["layer"][0]["data"]["values"],)
    assert {row["rate"] for row in drawn} == {90.0, 60.0, 80.0, 85.0}
    scale = spec["layer"][0]["encoding"]["color"]["scale"]
    assert scale == {"domain": ["erm", "umix"], "range": list(METHOD_COLOURS[:2])}
    assert spec["width"] == "container"
    assert "60.0 % (b, erm)" in figure.description


def test_of_many_groups_the_lowest_are_drawn_and_that_is_said() -> None:
    rows = [
        {"group": f"g{k}", "method": "erm", "rate": 100.0 - k, "low": 0.0, "high": 100.0, "size": 10, "seeds": 1}
        for k in range(40)
    ]
    assert lowest_groups(rows, 3) == ["g37", "g38", "g39"]
    assert "The 24 lowest of 40 are drawn." in group_bars("t", rows, {"erm": "#000"}, kind="group").description


def test_the_trade_off_has_a_point_per_seed_and_their_mean(runs: Runs) -> None:
    rows = [row for row in tradeoff_rows(runs["toy"], None) if row["method"] == "erm"]
    assert [(row["seed"], row["average"], row["worst"]) for row in rows] == [
        ("mean", 75.0, 60.0),
        ("0", 70.0, 50.0),
        ("1", 80.0, 70.0),
    ]
    figure = tradeoff(tradeoff_rows(runs["toy"], None), colours(["erm", "umix"]), kind="group")
    assert "umix with 80.0 %" in figure.description


def test_curves_count_epochs_from_one_and_mark_what_rules_choose(record: Callable[..., RunRecord]) -> None:
    run = record(0, [[5, 9], [8, 8], [10, 7]])
    assert selected_epochs(run)[2] == ["worst"]
    assert "average" in selected_epochs(run)[3]
    rows = curve_rows(["a", "b"], np.array([[0.5, 0.9], [0.8, np.nan]]))
    assert rows == [
        {"group": "a", "epoch": 1, "rate": 50.0},
        {"group": "a", "epoch": 2, "rate": 80.0},
        {"group": "b", "epoch": 1, "rate": 90.0},
    ]
    figure = curves("c", "C", rows, colours(["a", "b"]), axis="accuracy", marks={2: ["worst"]})
    assert "epoch 2: worst" in figure.description
    assert figure.description.startswith("After 2 epochs: ")
    one = curves("c", "C", rows[:1], colours(["a", "b"]), axis="accuracy")
    assert one.description.startswith("After 1 epoch: ")


def test_of_many_epochs_some_are_drawn_the_last_among_them() -> None:
    epochs = [row["epoch"] for row in curve_rows(["a"], np.linspace(0, 1, 1001)[:, None])]
    assert len(epochs) <= 150
    assert epochs[-1] == 1001


def test_densities_integrate_to_one_whatever_the_group_size() -> None:
    rng = np.random.default_rng(0)
    u = rng.integers(0, 11, 5000) / 10
    member = np.stack([np.arange(5000) < 4990, np.arange(5000) >= 4990], axis=1)
    rows = density_rows(u, member, ["large", "small"])
    for name, size in (("large", 4990), ("small", 10)):
        heights = [row["density"] for row in rows if row["group"] == name]
        assert np.trapezoid(heights, dx=0.01) == pytest.approx(1, abs=1e-3)
        assert {row["size"] for row in rows if row["group"] == name} == {size}
    figure = densities(rows, colours(["large", "small"]))
    assert figure.chart.to_dict()["encoding"]["color"]["scale"]["domain"] == ["large (n = 4,990)", "small (n = 10)"]


def test_groups_too_small_for_a_density_are_not_drawn_unless_all_are() -> None:
    member = np.stack([np.arange(40) < 37, np.arange(40) >= 37], axis=1)
    assert {row["group"] for row in density_rows(np.zeros(40), member, ["large", "small"])} == {"large"}
    assert {row["group"] for row in density_rows(np.zeros(3), member[37:], ["large", "small"])} == {"small"}


def test_the_axis_names_the_epochs_that_were_counted() -> None:
    rows = density_rows(np.zeros(20), np.ones((20, 1), dtype=bool), ["all"])
    axis = densities(rows, {"all": "#000000"}, window="epochs 1 to 3").chart.to_dict()["encoding"]["x"]["title"]
    assert axis == "uncertainty (share of epochs 1 to 3 with a wrong prediction)"


def test_the_density_is_the_mean_of_its_examples_kernels() -> None:
    u, at = np.array([0.2, 0.2, 0.6]), np.array([0.4])
    kernel = np.exp(-0.5 * ((at[:, None] - u) / 0.1) ** 2) / (0.1 * np.sqrt(2 * np.pi))
    assert density(u, at, bandwidth=0.1)[0] == pytest.approx(kernel.mean(), rel=1e-3)  # far from both ends


def test_every_weight_is_counted_once() -> None:
    weight = np.random.default_rng(0).exponential(size=1000)
    rows = weight_rows(weight)
    assert sum(row["count"] for row in rows) == 1000
    assert weight_rows(np.ones(7)) == [{"from": 0.5, "to": 1.5, "count": 7}]
    assert "worth 500 equally weighted examples of 1,000" in weights(rows, effective=500.0, n=1000).description


def test_colours_differ_up_to_eight_names() -> None:
    assert len(set(COLOURS)) == len(set(METHOD_COLOURS)) == 8
    assert colours(["a", "b"]) == {"a": COLOURS[0], "b": COLOURS[1]}
