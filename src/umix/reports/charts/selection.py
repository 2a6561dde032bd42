"""The candidates of a selection on validation: the worst group or class of each against its average, and the frontier."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, final

import altair as alt

from umix.bench.runs.record import RunRecord
from umix.core.rates import frontier
from umix.reports.charts.figure import Figure, LegendEntry, coloured, file_name, inline, picked, shaped, tip
from umix.reports.charts.palette import GREY, method_colours, method_shapes
from umix.reports.sentences import threshold_words

FRONTIER = "frontier"
_BY = {
    "group": "The score is the worst rate, in which groups of few examples are pulled towards their class.",
    "class": "The score is two fifths the worst class and three fifths the average.",
}


def candidate_rows(record: RunRecord) -> list[dict[str, Any]]:
    """All candidates, the best first, with their method and their rates on validation in percent.

    ``winner`` is whether the candidate was chosen. The name of a candidate begins with its method. Candidates without a worst rate
    are left out.
    """
    return [
        {
            "method": _method(candidate),
            "candidate": candidate["candidate"],
            "average": round(100 * candidate["average"], 6),
            "worst": round(100 * candidate["worst"], 6),
            "score": "average too low" if candidate["score"] is None else round(100 * candidate["score"], 6),
            "epochs": candidate["epochs"],
            "winner": place == 0,
        }
        for place, candidate in enumerate(record.choices["candidates"])
        if candidate["worst"] is not None
    ]


def frontier_rows(record: RunRecord) -> list[dict[str, Any]]:
    """The points that no candidate beats in both rates, by rising average, in percent.

    The selection keeps the frontier of all epochs and thresholds; candidates that were trained elsewhere belong to it too.
    """
    rated = [one for one in record.choices["candidates"] if one["worst"] is not None]
    points = [*record.choices["frontier"], *rated]
    kept = frontier([point["worst"] for point in points], [point["average"] for point in points])
    return [
        {
            "method": FRONTIER,
            "candidate": points[k]["candidate"],
            "average": round(100 * points[k]["average"], 6),
            "worst": round(100 * points[k]["worst"], 6),
        }
        for k in kept.tolist()
    ]


def _method(candidate: Mapping[str, Any]) -> str:
    return str(candidate["candidate"]).split(" ")[0]


def selection_chart(
    rows: Sequence[Mapping[str, Any]], line: Sequence[Mapping[str, Any]], *, kind: str, label: str
) -> Figure:
    """The candidates ``rows`` of a run of ``label`` and the frontier ``line``; the winner is ringed."""
    methods = sorted({row["method"] for row in rows}, key=lambda method: (method != "erm", method))
    colours, shapes = method_colours(methods), method_shapes(methods)
    drawn = _without_far_ones(rows)
    position: dict[str, Any] = {
        "x": alt.X("average:Q", title="average on validation, percent", scale=alt.Scale(zero=False, padding=12)),
        "y": alt.Y("worst:Q", title=f"worst {kind} on validation, percent", scale=alt.Scale(zero=False, padding=12)),
    }
    tips = [
        tip("candidate", "candidate"),
        tip("average", "average, %", ".1f"),
        tip("worst", f"worst {kind}, %", ".1f"),
    ]
    frontier_line = (
        alt.Chart(inline(line))
        .mark_line(strokeWidth=2, color=GREY, point={"size": 14, "color": GREY, "filled": True})
        .encode(**position, order=alt.Order("average:Q"), tooltip=tips, opacity=picked("method"))
    )
    tips = [*tips, tip("epochs", "epochs trained", "d")]
    points = (
        alt.Chart(inline(drawn[::-1]))  # the best are drawn over the others
        .mark_point(size=60, filled=True)
        .encode(
            **position,
            color=coloured("method", colours),
            shape=shaped("method", shapes),
            tooltip=tips,
            opacity=picked("method", opacity=0.85),
        )
    )
    chart, told = frontier_line + points, f"No candidate was chosen of {len(rows)}."
    for winner in [row for row in rows if row["winner"]]:
        at = alt.Chart(inline([winner])).encode(**position, tooltip=tips)
        chart += at.mark_point(size=260, filled=False, stroke="currentColor", strokeWidth=2, shape="circle")
        told = (
            f"Chosen, in the ring: {winner['candidate']}, with {winner['worst']:.1f} % in the worst {kind} and "
            f"{winner['average']:.1f} % on average."
        )
    if len(drawn) < len(rows):
        told += f" Not drawn, but among the numbers: {len(rows) - len(drawn)} far below the others on average."
    if "dfr" in methods:
        told += " DFR is measured on the part of validation that it was not fitted to."
    if "cb_last_layer" in methods:
        told += " The last layer from validation is measured on the part of validation that it was not trained on."
    return Figure(
        name=f"selection-{file_name(label)}",
        title=f"{label}: average against worst {kind} on validation",
        description=(
            "Each point is a candidate at its best epoch, with the threshold (biases of the classes) that suits it. "
            "Line: all epochs and thresholds of all candidates that no other beats in both rates. Up and to the right is better. "
            f"{_BY[kind]} {told}"
        ),
        columns={
            "candidate": "candidate",
            "worst": f"worst {kind}, %",
            "average": "average, %",
            "score": "score, %",
            "epochs": "epochs trained",
        },
        rows=rows,
        chart=chart,
        height=320,
        legend=[
            *(LegendEntry(method, colours[method], shape=shapes[method]) for method in methods),
            LegendEntry(FRONTIER, GREY),
        ],
    )


def _without_far_ones(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows without those that are so far below the others on average that nobody could tell the others apart.

    The best of every method stays.
    """
    averages = [float(row["average"]) for row in rows]
    middle = median(averages)
    lowest = middle - 5 * max(2.0, max(averages) - middle)
    firsts = {row["method"]: row["candidate"] for row in rows[::-1]}
    return [row for row in rows if row["average"] >= lowest or row["candidate"] == firsts[row["method"]]]


@final
@dataclass(frozen=True, eq=False)
class SelectionView:
    """The selection of one run of the method ``label``: what it says, and its figure."""

    label: str
    record: RunRecord
    sentences: Sequence[str]
    figure: Figure


def selection_views(runs: Mapping[str, Sequence[RunRecord]]) -> list[SelectionView]:
    """The selections of the first run of every method that made one, in which some candidate has a rate."""
    firsts = [(label, records[0]) for label, records in runs.items() if records]
    return [
        _view(label, record, rows)
        for label, record in firsts
        if record.choices.get("frontier") and (rows := candidate_rows(record))
    ]


def _view(label: str, record: RunRecord, rows: Sequence[Mapping[str, Any]]) -> SelectionView:
    kind = "group" if record.counts["val"].groups_choose else "class"
    figure = selection_chart(rows, frontier_rows(record), kind=kind, label=label)
    return SelectionView(label, record, threshold_words(record).split("\n"), figure)
