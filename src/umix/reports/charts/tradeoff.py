"""What the worst group gains and what the average pays: methods as points, their seeds as faint ones."""

from collections.abc import Mapping, Sequence
from typing import Any

from umix.bench.runs.record import RunRecord
from umix.reports.charts.figure import Figure, coloured, inline, switched
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

    chosen, opacity = switched("method")
    position = {
        "x": alt.X("average:Q", title="average accuracy, percent", scale=alt.Scale(zero=False, padding=20)),
        "y": alt.Y("worst:Q", title=f"worst {kind}, percent", scale=alt.Scale(zero=False, padding=20)),
        "color": coloured("method", methods).legend(symbolOpacity=1),
        "tooltip": ["method:N", "seed:N", "average:Q", "worst:Q"],
    }
    faint = alt.when(chosen).then(alt.value(0.4)).otherwise(alt.value(0.06))
    seeds = alt.Chart(inline([row for row in rows if row["seed"] != "mean"])).mark_point(size=40, filled=True)
    means = alt.Chart(inline([row for row in rows if row["seed"] == "mean"])).mark_point(size=170, filled=True)
    best = max((row for row in rows if row["seed"] == "mean"), key=lambda row: row["worst"])
    return Figure(
        name="trade-off",
        title=f"Average against worst {kind}",
        description=(
            f"Large points: means over seeds; faint points: seeds. Up and right is better. The best worst {kind} has "
            f"{best['method']} with {best['worst']:.1f} % at an average of {best['average']:.1f} %."
        ),
        columns={"method": "method", "seed": "seed", "average": "average, %", "worst": f"worst {kind}, %"},
        rows=rows,
        chart=seeds.encode(**position, opacity=faint) + means.encode(**position, opacity=opacity).add_params(chosen),
    )
