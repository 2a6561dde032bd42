"""Figures of ``umix theory``: chart specifications from findings, in colours that people of all sights tell apart."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import altair as alt
import numpy as np

from umix.reports.charts.figure import inline
from umix.theory.findings import Findings
from umix.theory.lemmas import FACTOR, Point

Format = Literal["svg", "png", "pdf", "html"]
#: Okabe and Ito's colours, without yellow, which is faint on white.
_COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"]
_WIDTH, _HEIGHT = 340, 240
_LEAST = 1e-3  # gaps below are noise
_ZERO = 1e-12  # series of exact statements are rounding noise: left out of logarithmic plots


def figures(findings: Findings) -> dict[str, Any]:
    """Altair charts by name."""
    return {
        "theory-remainder": remainder_chart(findings),
        "theory-regulariser": regulariser_chart(findings),
        "theory-alpha": alpha_chart(findings),
        "theory-gap": gap_chart(findings),
        "theory-risk": risk_chart(findings),
    }


def save_figures(findings: Findings, directory: Path, *, format_: Format) -> list[Path]:
    """Write every figure into ``directory`` and return the files; HTML holds all it needs."""
    options: dict[str, dict[str, Any]] = {"html": {"inline": True}, "png": {"scale_factor": 2}}
    directory.mkdir(parents=True, exist_ok=True)
    paths = {directory / f"{name}.{format_}": chart for name, chart in figures(findings).items()}
    for path, chart in paths.items():
        chart.save(path, **options.get(format_, {}))
    return list(paths)


def remainder_chart(findings: Findings) -> Any:
    """Left: the remainder of lemma A.1 falls with the third power of the strength; right: not with alpha."""
    points = _rows(findings.remainders)
    guide = [
        Point("third power", "", at, value) for at, value in _power(findings.remainders, model="logistic", exponent=3)
    ]
    left = _lines([*points, *_rows(guide)], "model", "mixing strength", "|remainder|", "Mixing less far: third order")
    shares = [point for point in findings.shares if point.value > _ZERO]
    right = (
        alt.Chart(inline(_rows(shares)), title="Smaller alpha: no smaller share")
        .mark_line(point=True)
        .encode(
            x=_log_x("at", "alpha"),
            y=alt.Y("value:Q", title="|remainder| / (|R1| + |R2|)", scale=alt.Scale(domainMin=0, nice=True)),
            color=_colour("model"),
        )
        .properties(width=_WIDTH, height=_HEIGHT)
    )
    return _styled(left | right)


def regulariser_chart(findings: Findings) -> Any:
    """Relative errors of the readings of lemma A.2 over the strength, for the two models where they are not 0."""
    panels = [
        _lines(
            _rows([point for point in findings.errors if point.model == model]),
            "curve",
            "mixing strength",
            "relative error",
            f"{model} model",
        )
        for model in ("logistic", "poisson")
    ]
    return _styled(panels[0] | panels[1])


def alpha_chart(findings: Findings) -> Any:
    """What lemma A.2 and the exact losses say mixing adds, over alpha."""
    points = [point for point in findings.factors if point.curve != FACTOR]
    edge = alt.Chart(inline([{"at": 1.0}])).mark_rule(strokeDash=[4, 4], color="#666666").encode(x="at:Q")
    title = "Below the dashed alpha = 1 the lemma is infinite"
    return _styled(alt.layer(_lines(_rows(points), "curve", "alpha", "what mixing adds to the loss", title), edge))


def gap_chart(findings: Findings) -> Any:
    """Mean gaps of both fits over n, a panel for each rank, beside both bounds' shapes drawn through one measured point."""
    rows = []
    anchor = max(findings.cells, key=lambda cell: (cell.rank, -cell.n))
    through = anchor.erm_gap.mean / np.sqrt(anchor.rank / anchor.n)
    for cell in findings.cells:
        place = {"rank": cell.rank, "n": cell.n}
        for curve, gap in (("weighted ERM", cell.erm_gap), ("weighted mixup", cell.mixup_gap)):
            low, high = gap.mean - 2 * gap.error, gap.mean + 2 * gap.error
            if gap.mean > _LEAST:
                rows.append({**place, "curve": curve, "value": gap.mean, "low": max(low, _LEAST), "high": high})
        rows.append({**place, "curve": "shape √(rank/n)", "value": through * np.sqrt(cell.rank / cell.n)})
        rows.append({**place, "curve": "shape √(d/n)", "value": through * np.sqrt(cell.dimension / cell.n)})
    order = ["weighted ERM", "weighted mixup", "shape √(rank/n)", "shape √(d/n)"]
    x = _log_x("n", "training size n", values=_sizes(findings))
    chart = alt.Chart().encode(x=x)
    scale_y = alt.Scale(type="log", domainMin=_LEAST, nice=False)
    y = alt.Y("value:Q", title="generalisation gap", scale=scale_y, axis=alt.Axis(tickCount=5))
    dashes = alt.Scale(domain=order, range=[[1, 0], [1, 0], [6, 4], [2, 3]])
    dash = alt.StrokeDash("curve:N", sort=order, title=None, scale=dashes, legend=alt.Legend(symbolType="stroke"))
    lines = chart.mark_line(point=True).encode(y=y, color=_colour("curve", order), strokeDash=dash)
    bars = chart.mark_rule().encode(
        y=alt.Y("low:Q", title="generalisation gap"), y2="high:Q", color=_colour("curve", order)
    )
    layers = alt.layer(bars, lines, data=inline(rows)).properties(width=_WIDTH * 0.6, height=_HEIGHT)
    return _styled(
        layers.facet(column=alt.Column("rank:Q", title=None, header=alt.Header(labelExpr="'rank ' + datum.value")))
    )


def risk_chart(findings: Findings) -> Any:
    """Population risk of weighted mixup less that of weighted ERM over n: below 0 mixing pays."""
    rows = [
        {
            "rank": f"rank {cell.rank}",
            "n": cell.n,
            "value": gain.mean,
            "low": gain.mean - 2 * gain.error,
            "high": gain.mean + 2 * gain.error,
        }
        for cell in findings.cells
        for gain in [cell.risk_change]
    ]
    order = list(dict.fromkeys(str(row["rank"]) for row in rows))
    x = _log_x("n", "training size n", values=_sizes(findings))
    y = alt.Y("value:Q", title="risk of mixup - risk of ERM")
    chart = alt.Chart(inline(rows), title="Below 0 mixing pays: few examples per direction")
    zero = alt.Chart(inline([{"zero": 0}])).mark_rule(color="#666666").encode(y="zero:Q")
    lines = chart.mark_line(point=True).encode(x=x, y=y, color=_colour("rank", order))
    bars = chart.mark_rule().encode(
        x=x, y=alt.Y("low:Q", title="risk of mixup - risk of ERM"), y2="high:Q", color=_colour("rank", order)
    )
    return _styled(alt.layer(zero, bars, lines).properties(width=_WIDTH, height=_HEIGHT))


def _lines(rows: Sequence[dict[str, Any]], by: str, x: str, y: str, title: str) -> Any:
    """A log-log chart of ``value`` over ``at``, a line for each ``by``."""
    shown = [row for row in rows if row["value"] > _ZERO]
    order = list(dict.fromkeys(row[by] for row in shown))
    shape = alt.Shape(f"{by}:N", sort=order, title=None, scale=alt.Scale(domain=order))  # as the colour's: one legend
    return (
        alt.Chart(inline(shown), title=title)
        .mark_line(point=True)
        .encode(
            x=_log_x("at", x),
            y=alt.Y("value:Q", title=y, scale=alt.Scale(type="log"), axis=alt.Axis(format="~e", tickCount=6)),
            color=_colour(by, order),
            shape=shape,
        )
        .properties(width=_WIDTH, height=_HEIGHT)
    )


def _log_x(field: str, title: str, values: list[int] | None = None) -> Any:
    axis = alt.Axis(values=values, format="d") if values else alt.Axis(tickCount=5)
    return alt.X(f"{field}:Q", title=title, scale=alt.Scale(type="log", nice=False, padding=8), axis=axis)


def _power(points: Sequence[Point], *, model: str, exponent: int) -> list[tuple[float, float]]:
    """The line of this slope a little below a model's series, through its weakest strength."""
    series = [point for point in points if point.model == model]
    last = min(series, key=lambda point: point.at)
    return [(point.at, 0.3 * last.value * (point.at / last.at) ** exponent) for point in series]


def _colour(by: str, order: list[str] | None = None) -> Any:
    scale = alt.Scale(domain=order, range=_COLOURS[: len(order)]) if order else alt.Scale(range=_COLOURS)
    return alt.Color(f"{by}:N", title=None, scale=scale, sort=order or "ascending")


def _rows(points: Sequence[Point]) -> list[dict[str, Any]]:
    return [asdict(point) for point in points]


def _sizes(findings: Findings) -> list[int]:
    return sorted({cell.n for cell in findings.cells})


def _styled(chart: Any) -> Any:
    return (
        chart.configure_view(stroke=None)
        .configure_axis(gridColor="#eeeeee", labelFontSize=11, titleFontSize=12)
        .configure_legend(orient="bottom", columns=2, labelLimit=400, labelFontSize=11)
        .configure_title(fontSize=13, anchor="start")
    )
