"""A contest between candidates on validation: the worst group or class of each against its average, and the frontier."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, final

import altair as alt

from umix.bench.runs.record import RunRecord
from umix.core.rates import frontier
from umix.reports.charts.figure import Figure, LegendEntry, coloured, file_name, inline, picked, shaped, tip
from umix.reports.charts.palette import GREY, METHOD_COLOURS, method_colours, method_shapes
from umix.reports.sentences import decision_words

#: What candidates of a method are called together; those of other methods are called by the method's name.
FAMILIES = {
    "erm": "ERM",
    "reweight": "class reweighting",
    "umix": "UMIX",
    "group_mixup": "group weights",
    "group_dro": "GroupDRO",
    "dfr": "DFR",
}
FRONTIER = "frontier"
_BY = {
    "group": "The score that decided is the worst rate, in which groups of few examples are pulled towards their class.",
    "class": "The score that decided is the mean of three rates: what ERM was sure of, what it was not, and the worst class.",
}
_LABEL_ROOM = 0.2  # above the highest point, where the name of the winner stands
_REWEIGHT = METHOD_COLOURS[4]  # its own colour is that of UMIX, from which only the shape tells it apart


def has_contest(record: RunRecord) -> bool:
    """Whether candidates raced for this run."""
    return bool(record.decisions.get("frontier")) and bool(record.decisions.get("standings"))


def kind_of(record: RunRecord) -> str:
    """What decided the contest: ``group``, if groups may choose and some are known in validation, else ``class``."""
    return "group" if record.counts["val"].groups_choose else "class"


def contest_rows(record: RunRecord) -> list[dict[str, Any]]:
    """All candidates, the best first, with their family and their rates on validation in percent.

    ``winner`` is whether the candidate was chosen, ``allowed`` whether its average is within the budget.
    Candidates without a rate are left out.
    """
    return [
        {
            "family": family_of(standing["candidate"]),
            "candidate": standing["candidate"],
            "average": round(100 * standing["average"], 2),
            "worst": round(100 * standing["worst"], 2),
            "score": None if standing["score"] is None else round(100 * standing["score"], 2),
            "epochs": standing["epochs"],
            "winner": place == 0,
            "allowed": standing["score"] is not None,
        }
        for place, standing in enumerate(record.decisions["standings"])
        if _is_known(standing)
    ]


def frontier_rows(record: RunRecord) -> list[dict[str, Any]]:
    """The points that no candidate beats in both rates, by rising average, in percent.

    The contest keeps the frontier of all epochs and decisions of its race; candidates that were not in the race belong to it too.
    """
    points = [point for point in [*record.decisions["frontier"], *record.decisions["standings"]] if _is_known(point)]
    kept = frontier([point["worst"] for point in points], [point["average"] for point in points])
    return [
        {
            "family": FRONTIER,
            "candidate": points[k]["candidate"],
            "average": round(100 * points[k]["average"], 2),
            "worst": round(100 * points[k]["worst"], 2),
        }
        for k in kept.tolist()
    ]


def family_of(candidate: str) -> str:
    """The family of a candidate, whose name begins with its method.

    >>> family_of("group_mixup power=1"), family_of("lisa_umix eta=3")
    ('group weights', 'lisa_umix')
    """
    method = candidate.split(" ")[0]
    return FAMILIES.get(method, method)


def family_colours(families: Sequence[str]) -> dict[str, str]:
    """A colour for every family: that of its method, but for class reweighting."""
    methods = {family: method for method, family in FAMILIES.items()}
    own = {family: method_colours([methods.get(family, family)]) for family in families}
    colours = {family: next(iter(found.values())) for family, found in own.items()}
    return {family: _REWEIGHT if family == FAMILIES["reweight"] else colour for family, colour in colours.items()}


def family_shapes(families: Sequence[str]) -> dict[str, str]:
    """A shape for every family: that of its method."""
    methods = {family: method for method, family in FAMILIES.items()}
    shapes = method_shapes([methods.get(family, family) for family in families])
    return {family: shapes[methods.get(family, family)] for family in families}


def contest_chart(
    rows: Sequence[Mapping[str, Any]], line: Sequence[Mapping[str, Any]], *, kind: str, label: str
) -> Figure:
    """The candidates ``rows`` of a run of ``label`` and the frontier ``line``; the winner is ringed and named."""
    found = {row["family"] for row in rows}
    families = [family for family in FAMILIES.values() if family in found]
    families += sorted(found - set(families))
    colours, shapes = family_colours(families), family_shapes(families)
    drawn = _without_far_ones(rows)
    everything = [*drawn, *line]
    scales = {
        name: alt.Scale(domain=_domain([row[name] for row in everything], above=above), nice=False)
        for name, above in (("average", 0.06), ("worst", _LABEL_ROOM))  # the winner's name stands above its point
    }
    position: dict[str, Any] = {
        "x": alt.X("average:Q", title="average on validation, percent", scale=scales["average"]),
        "y": alt.Y(
            "worst:Q",
            title=f"worst {kind} on validation, percent",
            scale=scales["worst"],
            axis=alt.Axis(labelExpr="datum.value > 100 ? '' : datum.label"),
        ),
    }
    tips = [
        tip("candidate", "candidate"),
        tip("average", "average, %", ".1f"),
        tip("worst", f"worst {kind}, %", ".1f"),
    ]
    frontier_line = (
        alt.Chart(inline(line))
        .mark_line(strokeWidth=2, color=GREY, point={"size": 14, "color": GREY, "filled": True})
        .encode(**position, order=alt.Order("average:Q"), tooltip=tips, opacity=picked("family"))
    )
    points = (
        alt.Chart(inline(_small_families_last(drawn)))
        .mark_point(size=60, filled=True)
        .encode(
            **position,
            color=coloured("family", colours),
            shape=shaped("family", shapes),
            tooltip=[*tips, tip("epochs", "epochs trained", "d")],
            opacity=picked("family", opacity=0.85),
        )
    )
    chart, told = frontier_line + points, f"No candidate was chosen of {len(rows)}."
    winners = [{**row, "text": "\n".join(row["candidate"].split(" ", 1))} for row in rows if row["winner"]]
    if winners:
        (winner,) = winners
        averages = [float(row["average"]) for row in everything]
        right = winner["average"] > (min(averages) + max(averages)) / 2
        at = alt.Chart(inline(winners)).encode(**position, tooltip=[*tips, tip("epochs", "epochs trained", "d")])
        ring = at.mark_point(size=260, filled=False, stroke="currentColor", strokeWidth=2, shape="circle")
        side: Any = "right" if right else "left"
        top = scales["worst"].domain[1]
        winners[0] |= {"top": top, "below": top - 0.6 * (top - max(row["worst"] for row in everything))}
        labelled = alt.Chart(inline(winners))
        name = labelled.mark_text(
            align=side, baseline="line-top", dx=6 if right else -6, fontWeight=600, fontSize=12, lineBreak="\n"
        ).encode(x=position["x"], y=alt.Y("top:Q"), text="text:N")
        pointer = labelled.mark_rule(strokeDash=[2, 2], color="currentColor", opacity=0.5).encode(
            x=position["x"], y=position["y"], y2=alt.Y2("below:Q")
        )
        chart = chart + pointer + ring + name
        told = (
            f"Chosen, in the ring: {winner['candidate']}, with {winner['worst']:.1f} % in the worst {kind} and "
            f"{winner['average']:.1f} % on average."
        )
    if len(drawn) < len(rows):
        told += f" Not drawn, but among the numbers: {len(rows) - len(drawn)} far below the others on average."
    apart = " DFR is judged on the part of validation that it was not fitted to." if FAMILIES["dfr"] in found else ""
    return Figure(
        name=f"contest-{file_name(label)}",
        title=f"{label}: average against worst {kind} on validation",
        description=(
            "Each point is a candidate at its best epoch of the race, with the decision (biases of the classes) that suits it. "
            "Line: all epochs and decisions of all candidates that no other beats in both rates. Up and to the right is better. "
            f"{_BY[kind]} "
            f"{told}{apart}"
        ),
        columns={
            "candidate": "candidate",
            "family": "family",
            "worst": f"worst {kind}, %",
            "average": "average, %",
            "score": "score that decided, %",
            "epochs": "epochs trained",
        },
        rows=rows,
        chart=chart,
        height=320,
        legend=[
            *(LegendEntry(family, colours[family], shape=shapes[family]) for family in families),
            LegendEntry(FRONTIER, GREY),
        ],
    )


def _small_families_last(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows in the order in which they are drawn: small families over large ones, and the best over the others."""
    sizes = Counter(row["family"] for row in rows)
    drawn = list(rows[::-1])
    drawn.sort(key=lambda row: -sizes[row["family"]])
    return drawn


def _without_far_ones(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows without those that are so far below the others on average that nobody could tell the others apart.

    The best of every family stays.
    """
    averages = [float(row["average"]) for row in rows]
    middle = median(averages)
    lowest = middle - 5 * max(2.0, max(averages) - middle)
    firsts = {row["family"]: row["candidate"] for row in rows[::-1]}
    return [row for row in rows if row["average"] >= lowest or row["candidate"] == firsts[row["family"]]]


def _domain(values: Sequence[float], *, above: float) -> list[float]:
    """The ends of an axis of percents, with room around the ``values``, ``above`` as a share of their range."""
    low, high = min(values), max(values)
    room = max(high - low, 5.0)
    return [max(0.0, low - 0.06 * room), high + above * room]


def _is_known(point: Mapping[str, Any]) -> bool:
    """Whether both rates of a candidate are known: numbers from 0 to 1."""
    return all(isinstance(rate := point[name], int | float) and 0 <= rate <= 1 for name in ("worst", "average"))


@final
@dataclass(frozen=True, eq=False)
class ContestView:
    """The contest of one run of the method ``label``: what it says, its figure, and ``best``, the best row of every family."""

    label: str
    record: RunRecord
    kind: str
    sentences: Sequence[str]
    figure: Figure
    best: Sequence[Mapping[str, Any]]


def contest_views(runs: Mapping[str, Sequence[RunRecord]]) -> list[ContestView]:
    """The contests of the first run of every method that held one."""
    return [_view(label, records[0]) for label, records in runs.items() if records and _is_drawn(records[0])]


def _is_drawn(record: RunRecord) -> bool:
    return has_contest(record) and bool(contest_rows(record))


def _view(label: str, record: RunRecord) -> ContestView:
    rows, kind = contest_rows(record), kind_of(record)
    best: dict[str, Mapping[str, Any]] = {}
    for row in rows:  # the best first
        best.setdefault(row["family"], row)
    return ContestView(
        label=label,
        record=record,
        kind=kind,
        sentences=decision_words(record).split("\n"),
        figure=contest_chart(rows, frontier_rows(record), kind=kind, label=label),
        best=list(best.values()),
    )
