"""A figure: the rows it draws, what it shows in words, and its chart for a page or a paper."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final

import altair as alt

from umix.errors import UserError
from umix.store import atomic_write

FileFormat = Literal["pdf", "svg", "png"]
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
_PAPER = "DejaVu Sans, Arial, sans-serif"
_SIDES = ("left", "top", "right", "bottom")
_GRID = "rgba(128,128,128,0.22)"


@final
@dataclass(frozen=True)
class LegendEntry:
    """One entry of a legend: a symbol of ``shape``, or a line with ``dash`` where there is no shape."""

    name: str
    colour: str
    shape: str = ""
    dash: tuple[int, ...] = ()


@final
@dataclass(frozen=True, eq=False)
class Figure:
    """``rows`` are the numbers drawn, under the keys of ``columns``, whose values are the headings of their table.

    ``description`` says in words what the chart shows, for readers who cannot see it. ``chart`` is an Altair chart without
    size or theme. The page draws ``legend`` as buttons beside the chart; a file has the legend of the chart itself.
    """

    name: str
    title: str
    description: str
    columns: Mapping[str, str]
    rows: Sequence[Mapping[str, Any]]
    chart: Any
    height: int = 260
    legend: Sequence[LegendEntry] = ()
    wide: bool = False  # a tall chart that takes most of the page's width

    def on_page(self) -> dict[str, Any]:
        """The Vega-Lite specification for a page: as wide as its place, in the colour of the text around it."""
        config = _config("currentColor", _FONT)
        config["legend"]["disable"] = True  # the page draws its own
        # On the right there is room for half of the last label: the axis may grow after the room for labels was measured.
        size = {
            "autosize": {"type": "fit-x", "contains": "padding"},
            "padding": {**dict.fromkeys(_SIDES, 5), "right": 14},
        }
        return {**self._spec("container"), **size, "config": config}

    def write(self, path: Path) -> None:
        """Write the figure to ``path`` for a paper, in the format of its suffix: black on white, 9 cm wide."""
        import vl_convert

        drawn = json.dumps(self._spec(300)).replace('"currentColor"', '"black"')
        spec = {**json.loads(drawn), "config": _config("black", _PAPER) | {"background": "white"}}
        if path.suffix == ".pdf":
            content = vl_convert.vegalite_to_pdf(spec)
        elif path.suffix == ".svg":
            content = vl_convert.vegalite_to_svg(spec).encode()
        elif path.suffix == ".png":
            content = vl_convert.vegalite_to_png(spec, scale=3)
        else:
            raise UserError(f"Figures must be pdf, svg or png, got {path.suffix!r}.")
        atomic_write(path, content)

    def _spec(self, width: int | str) -> dict[str, Any]:
        """The chart with the parameters that its expressions use: names picked in the legend, and whether space is narrow."""
        spec: dict[str, Any] = self.chart.properties(width=width, height=self.height).to_dict()
        own = [{"name": "picked", "value": []}, {"name": "narrow", "value": False}]
        return {**spec, "params": [*spec.get("params", []), *own]}


def _config(ink: str, font: str) -> dict[str, Any]:
    text = {"labelColor": ink, "titleColor": ink, "labelFont": font, "titleFont": font, "titleFontWeight": 500}
    return {
        "background": "transparent",
        "font": font,
        "view": {"stroke": None},
        "axis": {
            **text,
            "gridColor": _GRID,
            "domainColor": _GRID,
            "tickColor": _GRID,
            "labelFontSize": 12,
            "titleFontSize": 12,
        },
        "axisX": {"labelFlush": False, "tickCount": 6},
        "axisY": {"labelLimit": 300},
        "legend": {
            **text,
            "orient": "top",
            "columns": 2,
            "labelLimit": 300,
            "symbolOpacity": 1,
            "title": None,
            "labelFontSize": 12,
            "offset": 6,
        },
        "text": {"fill": ink, "font": font},
    }


def inline(rows: Sequence[Mapping[str, Any]]) -> Any:
    """The rows as a chart's data, all of them."""
    return alt.InlineData(values=[dict(row) for row in rows])


def coloured(field: str, colours: Mapping[str, str]) -> Any:
    """The colour of ``field`` by name, with a legend in that order."""
    return alt.Color(f"{field}:N", scale=_scale(colours), sort=list(colours))


def shaped(field: str, shapes: Mapping[str, str]) -> Any:
    """The shape of ``field`` by name, in one legend with a colour of the same names."""
    return alt.Shape(f"{field}:N", scale=_scale(shapes), sort=list(shapes))


def dashed(field: str, dashes: Mapping[str, Sequence[int]]) -> Any:
    """The dash of ``field`` by name, in one legend with a colour of the same names."""
    return alt.StrokeDash(f"{field}:N", scale=_scale(dashes), sort=list(dashes))


def _scale(values: Mapping[str, Any]) -> Any:
    return alt.Scale(domain=list(values), range=list(values.values()))


def picked(field: str, *, opacity: float = 1.0, faint: float = 0.1) -> Any:
    """The opacity by what is picked in the legend: names that are not picked are faint, unless none is picked."""
    test = f"!picked.length || indexof(picked, datum[{json.dumps(field)}]) >= 0"
    return alt.condition(test, alt.value(opacity), alt.value(faint))


def tip(field: str, title: str, form: str = "") -> Any:
    """A line of a tooltip: the field under this title; with ``form``, a number in this format."""
    return alt.Tooltip(f"{field}:Q", title=title, format=form) if form else alt.Tooltip(f"{field}:N", title=title)


def write_figures(figures: Sequence[Figure], folder: Path, form: FileFormat) -> list[Path]:
    """Write every figure into ``folder``; returns the paths."""
    paths = [folder / f"{figure.name}.{form}" for figure in figures]
    for figure, path in zip(figures, paths, strict=True):
        figure.write(path)
    return paths


def file_name(label: str) -> str:
    """A label as part of a file name.

    >>> file_name("umix sigma=0.0")
    'umix-sigma-0.0'
    """
    return "".join(letter if letter.isalnum() or letter in "._" else "-" for letter in label)[:60]
