"""Accuracy over epochs, one line per group, with the selected epoch marked; panels that are compared have equal axes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import altair as alt
import numpy as np

from umix.bench.runs.record import RunRecord
from umix.core.rates import per_group
from umix.core.words import counted
from umix.reports.charts.figure import Figure, LegendEntry, coloured, dashed, inline, picked, tip
from umix.reports.charts.palette import GREY, dash_of

_MOST_GROUPS = 24
_MOST_EPOCHS = 150  # points of a line that anybody can see


def counted_rates(record: RunRecord, split: str, threshold: int = 0) -> tuple[list[str], np.ndarray]:
    """Names and rates [epochs, names] of the groups, or of the classes where there are no groups, under one threshold."""
    counts = (record.threshold_counts if threshold else record.counts)[split].at_threshold(threshold)
    if record.groups:
        return record.groups, per_group(counts.hits, counts.sizes)
    return record.classes, per_group(counts.class_hits, counts.class_sizes)


@final
@dataclass(frozen=True)
class Panel:
    """One chart of several that are compared: its rows of ``curve_rows`` and the epoch that ``rule`` selects, from 1."""

    name: str
    title: str
    rows: Sequence[Mapping[str, Any]]
    axis: str
    n_groups: int
    selected: int | None = None
    rule: str = ""


def curve_rows(names: Sequence[str], rates: np.ndarray) -> list[dict[str, Any]]:
    """Percent of every name in every epoch, counted from 1; of many epochs every few, the last among them.

    Of many names the lowest in the last epoch are kept. What has no rate has no row.
    """
    epochs = len(rates)
    if not epochs:
        return []
    every = -(-epochs // _MOST_EPOCHS)
    kept = range((epochs - 1) % every, epochs, every)
    last = np.where(np.isnan(rates[-1]), np.inf, rates[-1])
    places = sorted(np.argsort(last, kind="stable")[:_MOST_GROUPS].tolist())
    return [
        {"group": names[place], "epoch": epoch + 1, "rate": round(100 * float(rates[epoch, place]), 2)}
        for place in places
        for epoch in kept
        if not np.isnan(rates[epoch, place])
    ]


def panels(compared: Sequence[Panel], colours: Mapping[str, str]) -> list[Figure]:
    """A figure for every panel that has rows; the axes of all have the same range."""
    drawn = [panel for panel in compared if panel.rows]
    if not drawn:
        return []
    epochs = max(row["epoch"] for panel in drawn for row in panel.rows)
    lowest = min(row["rate"] for panel in drawn for row in panel.rows)
    return [curves(panel, colours, epochs=epochs, lowest=10 * int(lowest // 10)) for panel in drawn]


def curves(panel: Panel, colours: Mapping[str, str], *, epochs: int | None = None, lowest: float = 0) -> Figure:
    """The lines of a panel from epoch 1 to ``epochs`` and from ``lowest`` to 100 percent; grey groups share a legend entry."""
    own_epochs = max(row["epoch"] for row in panel.rows)
    last = epochs or own_epochs
    entries = legend_names({row["group"]: colours[row["group"]] for row in panel.rows})
    x = alt.X(
        "epoch:Q",
        title="epoch",
        axis=alt.Axis(tickMinStep=1, format="d"),
        scale=alt.Scale(domain=[1, max(2, last)], nice=False, zero=False),
    )
    y = alt.Y("rate:Q", title=panel.axis, scale=alt.Scale(domain=[lowest, 100], nice=False))
    tips = [tip("group", "group"), tip("epoch", "epoch", "d"), tip("rate", "accuracy, %", ".1f")]
    mark = {"clip": True, "point": alt.OverlayMarkDef(size=36) if own_epochs == 1 else False}
    layers, legend = group_lines(panel.rows, colours, entries, mark, {"x": x, "y": y, "tooltip": tips})
    words = []
    n_shown = len(entries)
    if panel.n_groups > n_shown == _MOST_GROUPS:  # fewer lines than groups also means groups without examples
        words.append(f" The {n_shown} lowest of {panel.n_groups} are drawn.")
    if panel.selected is not None:
        text = f"epoch {panel.selected}, selected"
        selected = alt.Chart(inline([{"epoch": panel.selected, "text": text, "rule": panel.rule, "rate": lowest}]))
        right = panel.selected > (last + 1) / 2
        layers += [
            selected.mark_rule(strokeDash=[3, 3], color="currentColor", opacity=0.8).encode(
                x=x, tooltip=[tip("epoch", "selected epoch", "d"), tip("rule", "rule")]
            ),
            selected.mark_text(align="right" if right else "left", dx=-5 if right else 5, dy=-8, fontSize=12).encode(
                x=x, y=y, text="text:N"
            ),
        ]
        words.append(f" Dashed line: epoch {panel.selected}, which the rule {panel.rule} selects on validation.")
    told = [
        row for row in panel.rows if colours[row["group"]] != GREY
    ] or panel.rows  # groups with too few examples are grey
    ends = sorted({row["group"]: row["rate"] for row in told}.items(), key=lambda item: float(item[1]))
    summary = ", ".join(f"{group} {rate:.1f} %" for group, rate in ends[:4])
    more = f" and {len(ends) - 4} more" if len(ends) > 4 else ""
    return Figure(
        name=panel.name,
        title=panel.title,
        description=f"After {counted(own_epochs, 'epoch')}: {summary}{more}.{''.join(words)}",
        columns={"group": "group", "epoch": "epoch", "rate": "accuracy, %"},
        rows=panel.rows,
        chart=alt.layer(*layers),
        height=230,
        legend=legend,
    )


def legend_names(colours: Mapping[str, str]) -> dict[str, str]:
    """For every group its entry in the legend: its own name, or one entry for all grey groups.

    >>> legend_names({"a": "#BB3355", "b": GREY, "c": GREY})
    {'a': 'a', 'b': '2 other groups', 'c': '2 other groups'}
    """
    n_grey = sum(colour == GREY for colour in colours.values())
    others = f"{n_grey} other groups"
    return {name: others if colour == GREY and n_grey > 1 else name for name, colour in colours.items()}


def group_lines(
    rows: Sequence[Mapping[str, Any]],
    colours: Mapping[str, str],
    entries: Mapping[str, str],
    mark: Mapping[str, Any],
    encoding: Mapping[str, Any],
) -> tuple[list[Any], list[LegendEntry]]:
    """A line for every group of ``rows``, the coloured ones above the grey ones, and their legend, grey last.

    ``entries`` names the legend's entry of every group.
    """
    of_groups = {entry: colours[group] for group, entry in entries.items()}
    of_entries = dict(sorted(of_groups.items(), key=lambda item: item[1] == GREY))
    dashes = {entry: dash_of(colour) for entry, colour in of_entries.items()}
    shown = [{**row, "entry": entries[row["group"]]} for row in rows]
    layers = [
        alt.Chart(inline(part))
        .mark_line(strokeWidth=width, **mark)
        .encode(
            color=coloured("entry", of_entries),
            strokeDash=dashed("entry", dashes),
            detail="group:N",
            opacity=picked("entry"),
            **encoding,
        )
        for part, width in (
            ([row for row in shown if colours[row["group"]] == GREY], 1),
            ([row for row in shown if colours[row["group"]] != GREY], 2.5),
        )
        if part
    ]
    return layers, [LegendEntry(entry, colour, dash=dashes[entry]) for entry, colour in of_entries.items()]
