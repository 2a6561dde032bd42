"""The data drawn: rates, intervals, seeds, epochs and uncertainties are those of the records."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from umix.bench.runs.record import RunRecord
from umix.core.statistics import wilson
from umix.reports.charts.curves import Panel, curve_rows, curves, panels
from umix.reports.charts.figure import Figure
from umix.reports.charts.palette import GREY, group_colours, method_colours
from umix.reports.charts.probabilities import calibration_chart, calibration_rows, roc_chart, roc_rows
from umix.reports.charts.rates import TOO_SMALL, group_dots, group_order, group_rows, tradeoff, tradeoff_rows
from umix.reports.charts.uncertainty import share_rows, shares
from umix.reports.predictions import Predictions

Runs = dict[str, dict[str, list[RunRecord]]]


def parts(spec: object) -> Iterator[dict]:
    """Every object in a specification."""
    if isinstance(spec, dict):
        yield spec
        for value in spec.values():
            yield from parts(value)
    elif isinstance(spec, list):
        for value in spec:
            yield from parts(value)


def drawn(spec: dict, layer: dict) -> list[dict]:
    """The rows of one layer."""
    return layer["data"]["values"] if "values" in layer["data"] else spec["datasets"][layer["data"]["name"]]


def rate_row(group: str, rate: float, *, method: str = "erm", size: int = 100) -> dict:
    counted = {"size": size, "seeds": 1, "judged": size >= 30}
    return {"group": group, "method": method, "rate": rate, "low": 0.0, "high": 100.0, **counted}


def scored(label: np.ndarray, score: np.ndarray) -> Predictions:
    """Test examples whose probability of the second class is ``score``."""
    return Predictions(
        label=label,
        prediction=(score >= 0.5).astype(int),
        confidence=np.maximum(score, 1 - score),
        probability=np.column_stack([1 - score, score]),
        member=np.ones((len(label), 1), dtype=bool),
        row=None,
        file=None,
        split=np.repeat("test", len(label)),
    )


def every_figure() -> list[Figure]:
    """A figure of each kind, with two groups and two methods."""
    rows = [rate_row(group, 80.1, method=method) for group in "ab" for method in ("erm", "umix")]
    points = [{"method": "erm", "seed": seed, "average": 80.0, "worst": 70.0} for seed in ("mean", "0")]
    lines = curve_rows(["a", "b"], np.array([[0.5, 0.9], [0.8, 0.7]]))
    u, member = np.array([0.0, 0.5, 1.0]), np.array([[True, False], [True, False], [False, True]])
    test, groups = (
        scored(np.array([0, 1, 0, 1]), np.array([0.2, 0.7, 0.6, 0.4])),
        {"a": np.arange(4) < 2, "b": np.arange(4) >= 2},
    )
    return [
        group_dots(rows, method_colours(["erm", "umix"]), kind="group"),
        tradeoff(points, method_colours(["erm"]), kind="group"),
        curves(Panel("c", "C", lines, "accuracy", 2, selected=2, rule="worst"), group_colours(["a", "b"])),
        shares(share_rows(u, member, ["a", "b"]), group_colours(["a", "b"])),
        roc_chart(roc_rows(test, groups), group_colours(["a", "b"]), positive="yes", threshold=0.5),
        calibration_chart(calibration_rows(test, groups), group_colours(["a", "b"]), positive="yes"),
    ]


def test_dots_are_means_over_seeds_with_wilsons_interval(runs: Runs) -> None:
    rows = {(row["group"], row["method"]): row for row in group_rows(runs["toy"], None)}
    erm = rows["b", "erm"]  # 5 and 7 of 10
    assert erm["rate"] == 60.0
    assert erm["low"] == pytest.approx(50 * (wilson(5, 10).low + wilson(7, 10).low), abs=0.01)
    assert erm["size"] == 10
    assert erm["seeds"] == 2
    assert len(rows) == 4


def test_dots_are_drawn_in_the_methods_colours_and_whiskers_at_their_height() -> None:
    rows = [rate_row("a", 90.0), rate_row("b", 60.0), rate_row("a", 80.0, method="umix")]
    figure = group_dots(rows, method_colours(["erm", "umix"]), kind="group")
    spec = figure.on_page()
    _, whiskers, dots = spec["layer"]
    assert whiskers["mark"]["type"] == "rule"
    assert dots["mark"]["type"] == "point"
    assert whiskers["encoding"]["y"] == dots["encoding"]["y"]
    assert whiskers["data"] == dots["data"]
    assert {row["rate"] for row in drawn(spec, dots)} == {90.0, 60.0, 80.0}
    assert len({row["line"] for row in drawn(spec, dots)}) == 3  # no two dots of a group overlap
    scale = dots["encoding"]["color"]["scale"]
    assert scale == {"domain": ["erm", "umix"], "range": ["#7F7F7F", "#D55E00"]}
    assert spec["width"] == "container"
    assert "The lowest is 60.0 % (b, erm)." in figure.description


def test_groups_are_sorted_by_the_baseline_and_small_ones_come_last_in_grey() -> None:
    rows = [rate_row("high", 90.0), rate_row("small", 10.0, size=29), rate_row("low", 50.0)]
    rows += [rate_row("high", 20.0, method="umix"), rate_row("low", 95.0, method="umix")]
    order = group_order(rows, "erm")
    assert (order.judged, order.small) == (["low", "high"], ["small"])
    figure = group_dots(rows, method_colours(["erm", "umix"]), kind="group", baseline="erm")
    axis = figure.on_page()["layer"][0]["encoding"]["y"]["axis"]
    labels = ['["low", "n = 100"]', '["high", "n = 100"]', f'["{TOO_SMALL}:", ""]', '["small", "n = 29"]']
    paths = [axis["labelExpr"].rindex(label) for label in labels]
    assert paths == sorted(paths)
    spec = figure.on_page()
    *_, dots = spec["layer"]
    assert [row["group"] for row in drawn(spec, dots)] == ["small"]
    assert dots["encoding"]["color"] == {"value": GREY}
    assert "1 group with too few test examples" in figure.description


def test_where_space_is_narrow_long_names_are_wrapped_and_not_cut() -> None:
    rows = [rate_row("passed=0, Female, White", 50.0), rate_row("short", 60.0)]
    axis = group_dots(rows, method_colours(["erm"]), kind="group").on_page()["layer"][0]["encoding"]["y"]["axis"]
    narrow, _, _ = axis["labelExpr"].partition(" : ")
    assert narrow == '(narrow ? [["passed=0, Female,", "White"], ["short", "n = 100"]]'


def test_of_many_groups_the_lowest_are_drawn_and_that_is_said() -> None:
    rows = [rate_row(f"g{k}", 100.0 - k) for k in range(40)]
    figure = group_dots(rows, method_colours(["erm"]), kind="group")
    assert len(figure.rows) < 40
    assert figure.rows[0]["group"] == "g39"
    assert f"{len(figure.rows)} of 40 are drawn" in figure.description
    eight = [rate_row(f"g{k}", 50.0, method=f"m{m}") for k in range(40) for m in range(8)]
    assert group_dots(eight, method_colours([f"m{m}" for m in range(8)]), kind="group").height < 800  # fits a page


def test_every_line_of_a_tooltip_has_a_title_and_every_number_a_format() -> None:
    for figure in every_figure():
        tips = [tip for part in parts(figure.on_page()) for tip in part.get("tooltip", []) if isinstance(tip, dict)]
        assert tips, figure.name
        assert all(tip["title"] for tip in tips)
        assert all(tip.get("format") for tip in tips if tip["type"] == "quantitative")
        assert all(tip["format"] == ".1f" for tip in tips if tip["title"].endswith("%"))


def test_a_page_has_legends_of_its_own_and_a_file_those_of_the_chart() -> None:
    for figure in every_figure():
        assert figure.on_page()["config"]["legend"]["disable"]
        in_file = figure.chart.to_dict()
        colours = [part["color"] for part in parts(in_file) if isinstance(part.get("color"), dict)]
        named = {name for colour in colours for name in colour.get("scale", {}).get("domain", [])}
        assert named == {entry.name for entry in figure.legend}


def test_the_trade_off_has_a_point_per_seed_and_their_mean(runs: Runs) -> None:
    rows = [row for row in tradeoff_rows(runs["toy"], None) if row["method"] == "erm"]
    assert [(row["seed"], row["average"], row["worst"]) for row in rows] == [
        ("mean", 75.0, 60.0),
        ("0", 70.0, 50.0),
        ("1", 80.0, 70.0),
    ]
    figure = tradeoff(tradeoff_rows(runs["toy"], None), method_colours(["erm", "umix"]), kind="group")
    assert "umix is best on the worst group: 80.0 %, with an average of 82.5 %." in figure.description


def test_curves_count_epochs_from_one_and_mark_the_selected_one() -> None:
    rows = curve_rows(["a", "b"], np.array([[0.5, 0.9], [0.8, np.nan]]))
    assert rows == [
        {"group": "a", "epoch": 1, "rate": 50.0},
        {"group": "a", "epoch": 2, "rate": 80.0},
        {"group": "b", "epoch": 1, "rate": 90.0},
    ]
    panel = Panel("c", "C", rows, "accuracy", 2, selected=2, rule="worst")
    figure = curves(panel, group_colours(["a", "b"]))
    assert "epoch 2, which the rule worst selects on validation" in figure.description
    spec = figure.on_page()
    assert [row["text"] for row in drawn(spec, spec["layer"][-1])] == ["epoch 2, selected"]


def test_panels_that_are_compared_have_equal_axes() -> None:
    compared = [
        Panel(name, name, curve_rows(["a"], np.array(rates)[:, None]), "accuracy", 1)
        for name, rates in (("erm", [0.31, 0.5]), ("umix", [0.8, 0.9, 0.95]))
    ]
    specs = [figure.on_page() for figure in panels(compared, group_colours(["a"]))]
    scales = [[spec["layer"][0]["encoding"][axis]["scale"]["domain"] for axis in "xy"] for spec in specs]
    assert scales == [[[1, 3], [30, 100]]] * 2


def test_of_many_groups_four_are_coloured_and_the_others_share_a_grey_entry() -> None:
    names = [f"g{k}" for k in range(20)]
    rows = curve_rows(names, np.linspace(0.2, 0.9, 20)[None, :].repeat(3, axis=0))
    figure = curves(Panel("c", "C", rows, "accuracy", 20), group_colours(names, worst=names))
    assert [entry.name for entry in figure.legend] == ["g0", "g1", "g2", "g3", "16 other groups"]
    looks = {(entry.colour, entry.dash) for entry in figure.legend}
    assert len(looks) == 5


def test_of_many_epochs_some_are_drawn_the_last_among_them() -> None:
    epochs = [row["epoch"] for row in curve_rows(["a"], np.linspace(0, 1, 1001)[:, None])]
    assert len(epochs) <= 150
    assert epochs[-1] == 1001


def test_shares_of_a_window_are_counted_one_by_one() -> None:
    u = np.array([0.0, 0.0, 2 / 3, 1.0] * 10)
    member = np.stack([np.ones(40, bool), np.arange(40) < 10], axis=1)
    rows = share_rows(u, member, ["all", "ten"])
    assert [(row["u"], row["share"]) for row in rows if row["group"] == "all"] == [
        (0.0, 50.0),
        (0.3333, 0.0),
        (0.6667, 25.0),
        (1.0, 25.0),
    ]
    assert [row["share"] for row in rows if row["group"] == "ten"] == [60.0, 0.0, 20.0, 20.0]
    figure = shares(rows, group_colours(["all", "ten"]))
    assert [entry.name for entry in figure.legend] == ["all (n = 40)", "ten (n = 10)"]
    axis = figure.on_page()["layer"][0]["encoding"]["x"]["axis"]
    assert axis["values"] == [0.0, 0.3333, 0.6667, 1.0]


def test_uncertainties_of_many_values_are_counted_in_twenty_bins() -> None:
    u = np.random.default_rng(0).random(5000)
    rows = share_rows(u, np.ones((5000, 1), dtype=bool), ["all"])
    expected = 100 * np.histogram(u, bins=20, range=(0, 1))[0] / 5000
    assert [row["share"] for row in rows] == pytest.approx(expected, abs=0.006)
    assert [row["u"] for row in rows][:2] == [0.025, 0.075]


def test_groups_with_few_examples_are_not_drawn_unless_all_are_small() -> None:
    member = np.stack([np.arange(40) < 37, np.arange(40) >= 37], axis=1)
    assert {row["group"] for row in share_rows(np.zeros(40), member, ["large", "small"])} == {"large"}
    assert {row["group"] for row in share_rows(np.zeros(3), member[37:], ["large", "small"])} == {"small"}


def test_the_axis_names_the_epochs_that_were_counted() -> None:
    rows = share_rows(np.zeros(20), np.ones((20, 1), dtype=bool), ["all"])
    layer = shares(rows, {"all": "#000000"}, window="epochs 1 to 3").chart.to_dict()["layer"][0]
    assert layer["encoding"]["x"]["title"] == "uncertainty: share of epochs 1 to 3 wrong"


def test_the_captions_round_rates_once_as_the_tables_do(record: Callable[..., RunRecord]) -> None:
    hits = {"hits": [[2613, 3000]], "sizes": [3256, 3256], "class_hits": [[5613]], "class_sizes": [6512]}
    runs = {"erm": [record(0, [1, 1], split_counts={"val": hits, "test": hits})]}
    figure = tradeoff(tradeoff_rows(runs, None), method_colours(["erm"]), kind="group")
    assert "on the worst group: 80.3 %" in figure.description  # 80.2518 %; 80.25 would be rounded to 80.2
