"""Test rates of methods: a dot plot of every group, and the average against the worst group."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, final

import altair as alt
import numpy as np

from umix.bench.runs.folds import seed_summaries
from umix.bench.runs.record import RunRecord
from umix.bench.runs.summary import GroupRate
from umix.reports.charts.figure import Figure, LegendEntry, coloured, inline, picked, shaped, tip
from umix.reports.charts.palette import GREY, method_shapes
from umix.reports.comparison import lowest, mean_interval

#: A chart has at most this many groups and this height; the groups with the highest rates are left out, which it says.
MOST = 24
_HIGHEST = 740  # pixels: with title and caption it fits a printed page
_APART = 7  # pixels between the dots of two methods in a row
_NARROW = 20  # letters of a label where space is narrow
_LETTERS_HIGH = 14.5  # pixels of a line of a label
_AXIS = "test accuracy, percent"
TOO_SMALL = "too few examples"


def group_rows(runs: Mapping[str, Sequence[RunRecord]], select: str | None) -> list[dict[str, Any]]:
    """For every group (or class, where there are no groups) and method: test rate in percent over seeds, with an interval.

    The interval is Wilson's within a run, its ends averaged over the seeds. It shows how far off the rate may be because the
    group has few test examples.
    """
    rows: list[dict[str, Any]] = []
    for method, records in runs.items():
        by_group: dict[str, list[GroupRate]] = {}
        for summary in seed_summaries(records, select).values():
            for name, rate in (summary.groups or summary.classes).items():
                by_group.setdefault(name, []).append(rate)
        rows += [_row(name, method, rates) for name, rates in by_group.items() if rates[0].size]
    return rows


def _row(name: str, method: str, rates: Sequence[GroupRate]) -> dict[str, Any]:
    interval = mean_interval(rates)
    return {
        "group": name,
        "method": method,
        "rate": _percent(np.mean([rate.hits / rate.size for rate in rates])),
        "low": _percent(interval.low),
        "high": _percent(interval.high),
        "size": rates[0].size,
        "seeds": len(rates),
        "judged": any(rate.judged for rate in rates),
    }


@final
@dataclass(frozen=True)
class GroupOrder:
    """The groups of a chart: ``judged`` from the lowest rate to the highest, then those that are ``small``."""

    judged: Sequence[str]
    small: Sequence[str]


def group_order(rows: Sequence[Mapping[str, Any]], baseline: str) -> GroupOrder:
    """The groups in the order of their rate under ``baseline``, or of their mean rate where it has no run of them.

    Groups that are not judged are small.
    """
    rates: dict[str, list[float]] = {}
    judged = {
        name: any(row["judged"] for row in rows if row["group"] == name) for name in {row["group"] for row in rows}
    }
    for row in rows:
        rates.setdefault(row["group"], []).append(row["rate"])
    by_baseline = {row["group"]: row["rate"] for row in rows if row["method"] == baseline}
    ordered = sorted(rates, key=lambda name: by_baseline.get(name, float(np.mean(rates[name]))))
    return GroupOrder(
        judged=[name for name in ordered if judged[name]],
        small=[name for name in ordered if not judged[name]],
    )


def group_dots(
    rows: Sequence[Mapping[str, Any]], methods: Mapping[str, str], *, kind: str, baseline: str | None = None
) -> Figure:
    """The dot plot of the rows of ``group_rows``; ``methods`` gives each its colour, ``kind`` is group or class.

    Groups are sorted by their rate under ``baseline``, by default the first method.
    """
    reference = baseline or next(iter(methods), "")
    order = group_order(rows, reference)
    n_groups = len(order.judged) + len(order.small)
    height = max(34, 14 + _APART * len(methods), 200 // max(4, n_groups))  # few groups have room
    most = max(4, min(MOST, _HIGHEST // height))
    judged = order.judged[:most]
    small = order.small[: max(0, most - len(judged))]
    sizes = {row["group"]: row["size"] for row in rows}
    lines = [*judged, *([""] if small else []), *small]  # "" is the line that says why the rest is grey
    methods = {label: colour for label, colour in methods.items() if any(row["method"] == label for row in rows)}
    shown = _placed(rows, lines, list(methods), step=_APART / height)

    position = alt.Y(
        "line:Q",
        title=None,
        scale=alt.Scale(domain=[-0.6, max(0, len(lines) - 1) + 0.6], reverse=True, nice=False, zero=False),
        axis=alt.Axis(
            values=list(range(len(lines))),
            labelExpr=_line_labels(lines, sizes, most=max(2, int(height // _LETTERS_HIGH))),
            labelLimit=alt.ExprRef("narrow ? 135 : 230"),
            grid=False,
            ticks=False,
        ),
    )
    rate = alt.X("rate:Q", title=_AXIS, scale=alt.Scale(domain=[0, 100]))
    tips = [
        tip("group", kind),
        tip("method", "method"),
        tip("rate", "accuracy, %", ".1f"),
        tip("low", "95 % interval from, %", ".1f"),
        tip("high", "to, %", ".1f"),
        tip("size", "test examples", ",d"),
        tip("seeds", "seeds", "d"),
    ]
    shape = shaped("method", method_shapes(list(methods)))
    places = [{"line": place} for place, name in enumerate(lines) if name]
    layers = [alt.Chart(inline(places)).mark_rule(color="gray", opacity=0.18).encode(y=position)]
    for drawn, colour in (
        ([row for row in shown if row["group"] in judged], coloured("method", methods)),
        ([row for row in shown if row["group"] in small], alt.value(GREY)),
    ):
        if drawn:
            base = alt.Chart(inline(drawn)).encode(y=position, color=colour, opacity=picked("method"), tooltip=tips)
            layers.append(base.mark_rule(strokeWidth=1.5).encode(x=alt.X("low:Q", title=_AXIS), x2="high:Q"))
            layers.append(base.mark_point(filled=True, size=55, opacity=1).encode(x=rate, shape=shape))
    return Figure(
        name=f"{kind}-rates",
        title=f"Test accuracy of every {kind}",
        description=_described(shown, order, judged, small, kind=kind, reference=reference),
        columns={
            "group": kind,
            "method": "method",
            "rate": "accuracy, %",
            "low": "95 % from",
            "high": "to",
            "size": "n test",
            "seeds": "seeds",
        },
        rows=shown,
        chart=alt.layer(*layers),
        height=round((len(lines) + 0.2) * height),
        legend=[LegendEntry(label, methods[label], shape=mark) for label, mark in method_shapes(list(methods)).items()],
        wide=len(lines) > 10,
    )


def _placed(
    rows: Sequence[Mapping[str, Any]], lines: Sequence[str], methods: Sequence[str], *, step: float
) -> list[dict[str, Any]]:
    """The rows of the groups in ``lines`` with their vertical place: methods of a group are ``step`` of a line apart."""
    middle = (len(methods) - 1) / 2
    shown = [
        {**row, "line": round(lines.index(row["group"]) + step * (methods.index(row["method"]) - middle), 4)}
        for row in rows
        if row["group"] in lines
    ]
    return sorted(shown, key=lambda row: float(row["line"]))


def _line_labels(lines: Sequence[str], sizes: Mapping[str, int], *, most: int) -> str:
    """A Vega expression of the labels beside the lines; where space is narrow, long names are wrapped into ``most`` lines."""
    labels = [[name, f"n = {sizes[name]:,}"] if name else [f"{TOO_SMALL}:", ""] for name in lines]
    wrapped = [wrap(label[0], _NARROW, max_lines=most, placeholder="…") for label in labels]
    narrow = [label if len(parts) == 1 else parts for label, parts in zip(labels, wrapped, strict=True)]
    return f"(narrow ? {json.dumps(narrow)} : {json.dumps(labels)})[datum.value]"


def _described(
    shown: Sequence[Mapping[str, Any]],
    order: GroupOrder,
    judged: Sequence[str],
    small: Sequence[str],
    *,
    kind: str,
    reference: str,
) -> str:
    words = ["Dots: mean over seeds. Lines: 95 % interval within a run. n: test examples."]
    words.append(f"Sorted by the accuracy of {reference}, lowest first.")
    worst = min((row for row in shown if row["group"] in judged), key=lambda row: row["rate"], default=None)
    if worst:
        words.append(f"The lowest is {worst['rate']:.1f} % ({worst['group']}, {worst['method']}).")
    if order.small:
        several = "classes" if kind == "class" else f"{kind}s"
        few = f"1 {kind}" if len(order.small) == 1 else f"{len(order.small)} {several}"
        words.append(f"Grey: {few} with too few test examples to be the worst.")
    n_all, n_shown = len(order.judged) + len(order.small), len(judged) + len(small)
    if n_shown < n_all:
        words.append(f"{n_shown} of {n_all} are drawn: the lowest, large ones first.")
    return " ".join(words)


def _percent(rate: float | np.floating[Any]) -> float:
    """``rate`` in percent, with so many digits that a caption that rounds it again says what the tables say."""
    return round(100 * float(rate), 6)


def tradeoff_rows(runs: Mapping[str, Sequence[RunRecord]], select: str | None) -> list[dict[str, Any]]:
    """Average and worst test rate in percent of every seed and, as ``seed`` = mean, of every method."""
    rows: list[dict[str, Any]] = []
    for method, records in runs.items():
        seeds: list[dict[str, Any]] = []
        for seed, summary in seed_summaries(records, select).items():
            worst = lowest(summary)
            if summary.average is None or worst != worst:
                continue
            seeds.append({"average": _percent(summary.average), "worst": _percent(worst), "seed": str(seed)})
        if seeds:
            mean = {name: round(sum(row[name] for row in seeds) / len(seeds), 6) for name in ("average", "worst")}
            rows += [{"method": method, **row} for row in ({**mean, "seed": "mean"}, *seeds)]
    return rows


def tradeoff(rows: Sequence[Mapping[str, Any]], methods: Mapping[str, str], *, kind: str) -> Figure:
    """The scatter of these rows; ``methods`` gives each its colour."""
    marks = method_shapes(list(methods))
    position = {
        "x": alt.X("average:Q", title="average accuracy, percent", scale=alt.Scale(zero=False, padding=20)),
        "y": alt.Y("worst:Q", title=f"worst {kind}, percent", scale=alt.Scale(zero=False, padding=20)),
        "color": coloured("method", methods),
        "shape": shaped("method", marks),
        "tooltip": [
            tip("method", "method"),
            tip("seed", "seed"),
            tip("average", "average accuracy, %", ".1f"),
            tip("worst", f"worst {kind}, %", ".1f"),
        ],
    }
    seeds = alt.Chart(inline([row for row in rows if row["seed"] != "mean"])).mark_point(size=40, filled=True)
    means = alt.Chart(inline([row for row in rows if row["seed"] == "mean"])).mark_point(size=170, filled=True)
    best = max((row for row in rows if row["seed"] == "mean"), key=lambda row: row["worst"])
    return Figure(
        name="trade-off",
        title=f"Average against worst {kind}",
        description=(
            f"Large points: mean over seeds. Small points: single seeds. Up and to the right is better. {best['method']} is best "
            f"on the worst {kind}: {best['worst']:.1f} %, with an average of {best['average']:.1f} %."
        ),
        columns={"method": "method", "seed": "seed", "average": "average, %", "worst": f"worst {kind}, %"},
        rows=rows,
        chart=seeds.encode(**position, opacity=picked("method", opacity=0.45, faint=0.05))
        + means.encode(**position, opacity=picked("method")),
        legend=[LegendEntry(label, methods[label], shape=shape) for label, shape in marks.items()],
    )
