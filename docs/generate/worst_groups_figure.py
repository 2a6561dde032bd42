"""The figure of the home page: the worst group of five tables with boosted trees, with a tuned threshold, and with ``umix run``."""

import json
from pathlib import Path

import altair as alt
import vl_convert

TABLES = {
    "adult": "Adult: earns over 50K, by sex",
    "census": "Census: earns over 50K, by sex",
    "credit": "Credit cards: defaults, by sex",
    "bank": "Bank calls: says yes, by age",
    "compas": "COMPAS: reoffends, by sex",
}
ALONE, THRESHOLD, UMIX = "gradient boosting", "+ tuned threshold", "umix run"
COLOURS = {
    "light": ("#6b6b6b", "#b9b9b9", "#c8500a", "#1f2430"),
    "dark": ("#a8abb5", "#656975", "#ff9a4d", "#e6e8ee"),
}


def worst_group_figures(results: Path) -> dict[str, bytes]:
    """The figure for light and for dark pages as PNG, by file name; ``results`` is benchmarks/results/tables.json."""
    measured = json.loads(results.read_text(encoding="utf-8"))["results"]
    rows = [row for table, title in TABLES.items() for row in _rows(title, measured[table])]
    return {f"worst-groups-{scheme}.png": _png(rows, *colours) for scheme, colours in COLOURS.items()}


def _rows(title: str, measured: dict[str, dict]) -> list[dict[str, object]]:
    models = {
        ALONE: measured["libraries alone"]["HistGradientBoosting"],
        THRESHOLD: measured["learners"]["trees"]["erm + threshold"],
        UMIX: measured["learners"]["auto"]["best with groups"],
    }
    return [
        {
            "table": title,
            "model": model,
            "worst": 100 * rates["worst"],
            "text": "" if model == THRESHOLD else f"{100 * rates['worst']:.0f}",
        }
        for model, rates in models.items()
    ]


def _png(rows: list[dict[str, object]], alone: str, threshold: str, umix: str, ink: str) -> bytes:
    labels = alt.Axis(ticks=False, domain=False, labelExpr="split(datum.label, ': ')")  # in two lines
    y = alt.Y("table:N", sort=[*TABLES.values()], title=None, axis=labels)
    percent = alt.Axis(title="accuracy in the worst group, percent", values=[*range(0, 101, 20)])
    x = alt.X("worst:Q", axis=percent, scale=alt.Scale(domain=[0, 100]))
    colour = alt.Color(
        "model:N",
        scale=alt.Scale(domain=[ALONE, THRESHOLD, UMIX], range=[alone, threshold, umix]),
        legend=alt.Legend(orient="top", title=None, symbolType="circle", symbolSize=140, offset=8),
    )
    base = alt.Chart(alt.Data(values=rows)).encode(y=y)
    line = base.mark_rule(color=alone, opacity=0.5, strokeWidth=2).encode(x="min(worst):Q", x2="max(worst):Q")
    dots = base.mark_circle(size=170, opacity=1).encode(x=x, color=colour)
    texts = base.mark_text(dy=-14, fontSize=13, color=ink).encode(x=x, text="text:N")
    chart = (line + dots + texts).properties(width=290, height=alt.Step(46), background="transparent")
    chart = chart.configure(font="Liberation Sans")  # comes with vl-convert, so that every machine draws the same
    chart = (
        chart.configure_view(stroke=None)
        .configure_axis(
            labelColor=ink,
            titleColor=ink,
            labelFontSize=13,
            titleFontSize=13,
            titleFontWeight="normal",
            gridOpacity=0.2,
        )
        .configure_legend(labelColor=ink, labelFontSize=13)
    )
    return vl_convert.vegalite_to_png(chart.to_dict(), scale=2)
