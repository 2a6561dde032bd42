"""The rate of every group, methods side by side, with intervals and sizes."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from umix.bench.runs.record import GroupRate, RunRecord
from umix.core.statistics import wilson
from umix.reports.charts.figure import Figure, coloured, inline

#: Groups beyond these, in the order of their lowest rate, are left out of a chart, which says so.
MOST = 24


def group_rows(runs: Mapping[str, Sequence[RunRecord]], select: str | None) -> list[dict[str, Any]]:
    """For every group (or class, where there are no groups) and method: test rate in percent over seeds, with an interval.

    The interval is Wilson's within a run, its ends averaged over the seeds: how far off the rate may be for want of test examples.
    """
    rows: list[dict[str, Any]] = []
    for method, records in runs.items():
        summaries = [record.summary(select) for record in records if select is None or record.has(select)]
        found: dict[str, list[GroupRate]] = {}
        for summary in summaries:
            for name, rate in (summary.groups or summary.classes).items():
                found.setdefault(name, []).append(rate)
        rows += [_row(name, method, rates) for name, rates in found.items() if rates[0].size]
    return rows


def _row(name: str, method: str, rates: Sequence[GroupRate]) -> dict[str, Any]:
    ends = [wilson(rate.hits, rate.size) for rate in rates]
    mean = np.mean([rate.hits / rate.size for rate in rates])
    low, high = np.mean([end.low for end in ends]), np.mean([end.high for end in ends])
    numbers = {"rate": _percent(mean), "low": _percent(low), "high": _percent(high)}
    return {"group": name, "method": method, **numbers, "size": rates[0].size, "seeds": len(rates)}


def lowest_groups(rows: Sequence[Mapping[str, Any]], most: int = MOST) -> list[str]:
    """The groups in these rows, or the ``most`` with the lowest rates, in the order of the rows."""
    lowest: dict[str, float] = {}
    for row in rows:
        lowest[row["group"]] = min(row["rate"], lowest.get(row["group"], math.inf))
    kept = set(sorted(lowest, key=lambda name: lowest[name])[:most])
    return [name for name in lowest if name in kept]


def group_bars(task: str, rows: Sequence[Mapping[str, Any]], methods: Mapping[str, str], *, kind: str) -> Figure:
    """Bars of the rows' rates; ``methods`` gives each its colour, ``kind`` is group or class."""
    import altair as alt

    names = lowest_groups(rows)
    n_all = len({row["group"] for row in rows})
    shown = [
        {**row, "place": f"{row['group']}\n(n = {row['size']:,})"}
        for row in sorted(rows, key=lambda row: list(methods).index(row["method"]))
        if row["group"] in names
    ]
    order = list(dict.fromkeys(row["place"] for row in sorted(shown, key=lambda row: names.index(row["group"]))))
    base = alt.Chart(inline(shown)).encode(
        y=alt.Y("place:N", sort=order, title=None, axis=alt.Axis(labelExpr=r"split(datum.label, '\n')")),
        yOffset=alt.YOffset("method:N", sort=list(methods)),
    )
    axis = alt.X("rate:Q", title="test accuracy, percent", scale=alt.Scale(domain=[0, 100]))
    tips = [alt.Tooltip(f"{name}:{kind_of}") for name, kind_of in (("group", "N"), ("method", "N"), ("rate", "Q"))]
    bars = base.mark_bar(height=alt.RelativeBandSize(0.85)).encode(
        x=axis, color=coloured("method", methods), tooltip=[*tips, "low:Q", "high:Q", "size:Q"]
    )
    ends = base.mark_rule(strokeWidth=1.5, color="currentColor").encode(x="low:Q", x2="high:Q")
    worst = min(shown, key=lambda row: row["rate"], default=None)
    left_out = f" The {len(names)} lowest of {n_all} are drawn." if len(names) < n_all else ""
    lowest = f" The lowest is {worst['rate']:.1f} % ({worst['group']}, {worst['method']})." if worst else ""
    return Figure(
        name=f"{kind}-rates",
        title=f"Test accuracy of every {kind}",
        description=f"Bars: mean over seeds. Lines: 95 % interval within a run. n: test examples.{lowest}{left_out}",
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
        chart=bars + ends,
        height=60 + len(names) * max(34, 8 + len(methods) * max(7, 16 - len(methods))),
    )


def _percent(rate: float | np.floating[Any]) -> float:
    return round(100 * float(rate), 2)
