"""A figure: the rows it draws, what it shows in words, and its chart for a page or a paper."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final

from umix.errors import UserError
from umix.files import write_whole

FileFormat = Literal["pdf", "svg", "png"]
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
_PAPER = "DejaVu Sans, Arial, sans-serif"
_GRID = "rgba(128,128,128,0.22)"


@final
@dataclass(frozen=True, eq=False)
class Figure:
    """``rows`` are the numbers drawn, under the keys of ``columns``, whose values are the headings of their table.

    ``description`` says what there is to see, for who cannot see it. ``chart`` is an Altair chart without size or theme.
    """

    name: str
    title: str
    description: str
    columns: Mapping[str, str]
    rows: Sequence[Mapping[str, Any]]
    chart: Any
    height: int = 260

    def on_page(self) -> dict[str, Any]:
        """The Vega-Lite specification for a page: as wide as its place, in the colour of the text around it."""
        spec: dict[str, Any] = self._sized("container").to_dict()
        fit = {"type": "fit-x", "contains": "padding"}
        return {**spec, "autosize": fit, "config": _config("currentColor", _FONT)}

    def write(self, path: Path) -> None:
        """Write the figure to ``path`` for a paper, in the format of its suffix: black on white, 9 cm wide."""
        import vl_convert

        drawn = json.dumps(self._sized(300).to_dict()).replace('"currentColor"', '"black"')
        spec = {**json.loads(drawn), "config": _config("black", _PAPER) | {"background": "white"}}
        if path.suffix == ".pdf":
            content = vl_convert.vegalite_to_pdf(spec)
        elif path.suffix == ".svg":
            content = vl_convert.vegalite_to_svg(spec).encode()
        elif path.suffix == ".png":
            content = vl_convert.vegalite_to_png(spec, scale=3)
        else:
            raise UserError(f"Figures must be pdf, svg or png, got {path.suffix!r}.")
        write_whole(path, content)

    def _sized(self, width: int | str) -> Any:
        return self.chart.properties(width=width, height=self.height)


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
            "labelFontSize": 11,
        },
        "axisX": {"labelFlush": False, "tickCount": 6},
        "axisY": {"labelLimit": 180},
        "legend": {
            **text,
            "orient": "top",
            "columns": 2,
            "labelLimit": 230,
            "symbolOpacity": 1,
            "title": None,
            "labelFontSize": 12,
            "offset": 6,
        },
        "text": {"fill": ink, "font": font},
    }


def inline(rows: Sequence[Mapping[str, Any]]) -> Any:
    """The rows as a chart's data, all of them."""
    import altair as alt

    return alt.InlineData(values=[dict(row) for row in rows])


def coloured(field: str, colours: Mapping[str, str]) -> Any:
    """The colour of ``field`` by name, with a legend in that order."""
    import altair as alt

    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    return alt.Color(f"{field}:N", scale=scale, sort=list(colours))


def switched(field: str) -> tuple[Any, Any]:
    """A selection that a click in the legend of ``field`` switches, and the opacity by it: what is not chosen turns faint."""
    import altair as alt

    chosen = alt.selection_point(name="chosen", fields=[field], bind="legend")
    return chosen, alt.when(chosen).then(alt.value(1.0)).otherwise(alt.value(0.12))


def write_figures(figures: Sequence[Figure], folder: Path, form: FileFormat) -> list[Path]:
    """Write every figure into ``folder``; returns the paths."""
    paths = [folder / f"{figure.name}.{form}" for figure in figures]
    for figure, path in zip(figures, paths, strict=True):
        figure.write(path)
    return paths
