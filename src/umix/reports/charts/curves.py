"""Rates over epochs, one line per group, with the epochs that the selection rules choose."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from umix.bench.runs.record import RunRecord
from umix.core.rates import per_group
from umix.core.selection import RULES
from umix.core.words import counted
from umix.reports.charts.figure import Figure, coloured, inline, switched

_MOST_GROUPS = 12
_MOST_EPOCHS = 150  # points of a line that anybody can see


def counted_rates(record: RunRecord, split: str) -> tuple[list[str], np.ndarray]:
    """Names and rates [epochs, names] of the groups, or of the classes where there are no groups."""
    counts = record.counts[split]
    if record.groups:
        return record.groups, per_group(counts.hits, counts.sizes)
    return record.classes, per_group(counts.class_hits, counts.class_sizes)


def selected_epochs(record: RunRecord) -> dict[int, list[str]]:
    """Which rules choose which epoch, counted from 1."""
    chosen: dict[int, list[str]] = {}
    for rule in RULES:
        if record.has(rule):
            chosen.setdefault(record.best_epoch(rule) + 1, []).append(rule)
    return dict(sorted(chosen.items()))


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


def curves(
    name: str,
    title: str,
    rows: Sequence[Mapping[str, Any]],
    colours: Mapping[str, str],
    *,
    axis: str,
    marks: Mapping[int, Sequence[str]] | None = None,
    n_groups: int = 0,
) -> Figure:
    """The lines of these rows; ``marks`` says which rules choose which epoch."""
    import altair as alt

    shown = {group: colour for group, colour in colours.items() if any(row["group"] == group for row in rows)}
    chosen, opacity = switched("group")
    epochs = max(row["epoch"] for row in rows)
    lines = (
        alt.Chart(inline(rows))
        .mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=36) if epochs == 1 else False)
        .encode(
            x=alt.X("epoch:Q", title="epoch", axis=alt.Axis(tickMinStep=1, format="d"), scale=alt.Scale(nice=False)),
            y=alt.Y("rate:Q", title=axis, scale=alt.Scale(zero=False, nice=True)),
            color=coloured("group", shown),
            opacity=opacity,
            tooltip=["group:N", "epoch:Q", "rate:Q"],
        )
        .add_params(chosen)
    )
    words = f" The {len(shown)} lowest of {n_groups} are drawn." if n_groups > len(shown) else ""
    if marks:
        told = [{"epoch": epoch, "rules": ", ".join(rules)} for epoch, rules in marks.items()]
        ticks = alt.Chart(inline(told)).mark_rule(strokeDash=[3, 3], color="currentColor", opacity=0.7)
        lines = lines + ticks.encode(x="epoch:Q", tooltip=["epoch:Q", "rules:N"])
        chosen_by = "; ".join(f"epoch {epoch}: {', '.join(rules)}" for epoch, rules in marks.items())
        words += f" Dashed: the epochs that selection rules choose on validation ({chosen_by})."
    ends = {row["group"]: row["rate"] for row in rows}
    summary = ", ".join(f"{group} {rate:.1f} %" for group, rate in list(ends.items())[:4])
    more = ", …" if len(ends) > 4 else ""
    return Figure(
        name=name,
        title=title,
        description=f"After {counted(epochs, 'epoch')}: {summary}{more}.{words}",
        columns={"group": "group", "epoch": "epoch", "rate": "accuracy, %"},
        rows=rows,
        chart=lines,
        height=230,
    )
