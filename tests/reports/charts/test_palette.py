"""Colours are fixed by name, and no two things in a chart look alike."""

import colorsys
import re
from importlib import resources
from itertools import combinations, product

import numpy as np
import pytest

from umix.methods import METHODS
from umix.reports.charts.palette import (
    GREY,
    GROUP_COLOURS,
    METHOD_COLOURS,
    METHOD_ORDER,
    dash_of,
    group_colours,
    method_colours,
    method_shapes,
)

OWN = [name for name in METHODS if name in {*METHOD_ORDER, "erm"}]


def hue(colour: str) -> float | None:
    """In degrees; grey has none."""
    red, green, blue = (int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5))
    angle, _, saturation = colorsys.rgb_to_hls(red, green, blue)
    return 360 * angle if saturation > 0.15 else None


def test_every_place_in_the_order_is_that_of_a_method() -> None:
    assert set(METHOD_ORDER) < set(METHODS.own)


@pytest.mark.parametrize("others", [["erm"], ["a", "b", "c"], ["zeta", "jtt", "mixup"]])
def test_a_method_has_the_same_colour_whatever_else_is_in_the_report(others: list[str]) -> None:
    for name in [*METHOD_ORDER, "erm", "from_another_package"]:
        assert method_colours([*others, name])[name] == method_colours([name])[name]
    known = method_colours(["erm", "umix", "group_dro"])
    assert known == {"erm": "#7F7F7F", "umix": "#D55E00", "group_dro": "#0072B2"}


def test_no_two_methods_of_a_report_have_the_same_colour_and_shape() -> None:
    labels = [*METHODS.own, "umix sigma=0.0", "umix sigma=0.5", "one_of_mine", "another_of_mine"]
    colours, shapes = method_colours(labels), method_shapes(labels)
    assert len({(colours[label], shapes[label]) for label in labels}) == len(labels)


def test_variants_of_a_method_keep_its_hue_and_the_first_its_colour() -> None:
    labels = ["umix sigma=0.0", "umix sigma=0.5", "umix sigma=1.0"]
    colours = method_colours(labels, first="umix sigma=1.0")
    assert colours["umix sigma=1.0"] == "#D55E00"
    assert len(set(colours.values())) == 3
    assert all(abs((hue(colour) or 0) - (hue("#D55E00") or 0)) < 5 for colour in colours.values())


def test_groups_have_hues_that_no_method_has() -> None:
    methods = [angle for colour in METHOD_COLOURS if (angle := hue(colour)) is not None]
    for colour in GROUP_COLOURS:
        own = hue(colour)
        assert own is not None
        assert all(min(abs(own - angle), 360 - abs(own - angle)) > 20 for angle in methods)


def test_of_twenty_groups_the_worst_four_are_coloured() -> None:
    names = [f"g{k}" for k in range(20)]
    colours = group_colours(names, worst=["g7", "g3", "g9", "g1", "g0"])
    coloured = {name: colour for name, colour in colours.items() if colour != GREY}
    assert set(coloured) == {"g7", "g3", "g9", "g1"}
    assert len({(colour, dash_of(colour)) for colour in coloured.values()}) == 4
    assert len(set(group_colours(names[:4]).values())) == 4


#: What people with a kind of colour blindness see of linear RGB (Machado, Oliveira and Fernandes 2009, severity 1).
VISION = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def linear(colour: str) -> np.ndarray:
    rgb = np.array([int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)])
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def oklab(rgb: np.ndarray) -> np.ndarray:
    """Ottosson's perceptual coordinates of linear RGB, times 100: 2 is about a just noticeable difference."""
    cones = [
        [0.41222147, 0.53633254, 0.05144599],
        [0.2119035, 0.68069955, 0.10739696],
        [0.08830246, 0.28171884, 0.6299787],
    ]
    axes = [
        [0.21045426, 0.79361779, -0.00407205],
        [1.9779985, -2.42859221, 0.45059371],
        [0.02590404, 0.78277177, -0.80867577],
    ]
    return 100 * np.array(axes) @ np.cbrt(np.array(cones) @ np.clip(rgb, 0, 1))


@pytest.mark.parametrize("vision", VISION)
def test_four_groups_have_four_colours_that_people_with_any_colour_vision_tell_apart(vision: str) -> None:
    seen = [oklab(VISION[vision] @ linear(colour)) for colour in GROUP_COLOURS]
    nearest = min(float(np.linalg.norm(one - other)) for one, other in combinations(seen, 2))
    assert nearest > (20 if vision == "normal" else 13)


def test_the_colours_of_groups_have_a_contrast_of_three_to_the_light_and_the_dark_page() -> None:
    style = (resources.files("umix.reports.page") / "template" / "style.css").read_text()
    pages = set(re.findall(r"--paper: (#[0-9a-f]{6});", style))
    assert len(pages) == 2
    assert not re.search(r"\.card\b[^{]*\{[^}]*background", style), "a figure has the background of the page"
    shares = np.array([0.2126, 0.7152, 0.0722])
    for colour, page in product([*GROUP_COLOURS, GREY], pages):
        dark, light = sorted(float(linear(one) @ shares) + 0.05 for one in (colour, page))
        assert light / dark >= 3
