"""Average accuracy against the worst group: a large point for each method, small points for its seeds."""

from collections.abc import Mapping, Sequence
from typing import Any

from umix.bench.runs.record import RunRecord
from umix.reports.charts.figure import Figure, LegendEntry, coloured, inline, picked, shaped, tip
from umix.reports.charts.palette import method_shapes
from umix.reports.regret import lowest


def tradeoff_rows(runs: Mapping[str, Sequence[RunRecord]], select: str | None) -> list[dict[str, Any]]:
    """Average and worst test rate in percent of every seed and, as ``seed`` = mean, of every method."""
    rows: list[dict[str, Any]] = []
    for method, records in runs.items():
        seeds: list[dict[str, Any]] = []
        for record in records:
            if select is not None and not record.has(select):
                continue
            summary = record.summary(select)
            worst = lowest(summary)
            if summary.average is None or worst != worst:
                continue
            seeds.append(
                {"average": round(100 * summary.average, 2), "worst": round(100 * worst, 2), "seed": str(record.seed)}
            )
        if seeds:
            mean = {name: round(sum(row[name] for row in seeds) / len(seeds), 2) for name in ("average", "worst")}
            rows += [{"method": method, **row} for row in ({**mean, "seed": "mean"}, *seeds)]
    return rows


def tradeoff(rows: Sequence[Mapping[str, Any]], methods: Mapping[str, str], *, kind: str) -> Figure:
    """The scatter of these rows; ``methods`` gives each its colour."""
    import altair as alt

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
