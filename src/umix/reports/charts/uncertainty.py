"""Uncertainty of the training examples: its density in every group, and the weights made of it."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

from umix.reports.charts.curves import group_lines, legend_names
from umix.reports.charts.figure import Figure, inline, tip

_POINTS = 101
_BINS = 30
_MOST_GROUPS = 24
#: Smaller groups have no density worth drawing, unless all groups are that small.
FEW = 10
#: The width of the kernel: u takes few values, so that a rule of thumb would draw needles.
BANDWIDTH = 0.06


def density(u: np.ndarray, grid: np.ndarray, *, bandwidth: float = BANDWIDTH) -> np.ndarray:
    """Gaussian kernel density of ``u`` [n] in [0, 1] at ``grid``, reflected at both ends so that nothing lies outside.

    >>> grid = np.linspace(0, 1, 1001)
    >>> bool(abs(np.trapezoid(density(np.array([0.0, 0.3, 1.0]), grid), grid) - 1) < 1e-6)
    True
    """
    values, counts = np.unique(u, return_counts=True)  # few: shares of the window's epochs
    mirrored = np.concatenate([values, -values, 2 - values])
    kernel = np.exp(-0.5 * ((grid[:, None] - mirrored) / bandwidth) ** 2) / (bandwidth * np.sqrt(2 * np.pi))
    return np.asarray(kernel @ np.tile(counts / counts.sum(), 3))


def density_rows(u: np.ndarray, member: np.ndarray, names: Sequence[str]) -> list[dict[str, Any]]:
    """The density of ``u`` [n] in the groups of ``member`` [n, groups] with at least ten examples; of many groups, the smallest."""
    sizes = member.sum(axis=0)
    fewest = FEW if (sizes >= FEW).any() else 1
    kept = sorted([g for g in np.argsort(sizes, kind="stable").tolist() if sizes[g] >= fewest][:_MOST_GROUPS])
    grid = np.linspace(0, 1, _POINTS)
    return [
        {
            "group": names[g],
            "size": int(sizes[g]),
            "mean": round(float(u[member[:, g]].mean()), 4),
            "u": round(float(at), 3),
            "density": round(float(height), 4),
        }
        for g in kept
        for at, height in zip(grid, density(u[member[:, g]], grid), strict=True)
    ]


def densities(
    rows: Sequence[Mapping[str, Any]],
    colours: Mapping[str, str],
    *,
    name: str = "uncertainty",
    title: str | None = None,
    of: str = "epochs",
    window: str = "",
) -> Figure:
    """The densities of these rows as lines.

    ``of`` names what the share of wrong predictions is taken over, ``window`` in words which epochs were counted.
    """
    sizes = {row["group"]: row["size"] for row in rows}
    grouped = legend_names({group: colours[group] for group in sizes})
    entries = {
        group: f"{group} (n = {sizes[group]:,})" if entry == group else entry for group, entry in grouped.items()
    }
    encoding = {
        "x": alt.X("u:Q", title=f"uncertainty: share of {window or of} wrong", scale=alt.Scale(domain=[0, 1])),
        "y": alt.Y("density:Q", title="density"),
        "tooltip": [
            tip("group", "group"),
            tip("size", "training examples", ",d"),
            tip("u", "uncertainty", ".2f"),
            tip("density", "density", ".2f"),
        ],
    }
    layers, legend = group_lines(rows, colours, entries, {}, encoding)
    means = {row["group"]: row["mean"] for row in rows}
    highest = max(means, key=lambda group: means[group])
    return Figure(
        name=name,
        title=title or "Uncertainty of the training examples",
        description=(
            f"Kernel density (Gaussian, bandwidth {BANDWIDTH}) by group, n: training examples; groups with fewer than {FEW} are "
            f"not drawn. The most uncertain group drawn is {highest}, with a mean of {means[highest]:.2f}."
        ),
        columns={
            "group": "group",
            "size": "n train",
            "mean": "mean uncertainty",
            "u": "uncertainty",
            "density": "density",
        },
        rows=rows,
        chart=alt.layer(*layers),
        legend=legend,
    )


def weight_rows(weight: np.ndarray) -> list[dict[str, Any]]:
    """How many examples have weights in each of some bins; empty bins have no row."""
    spread = np.ptp(weight) > 1e-9
    edges = np.histogram_bin_edges(weight, bins=_BINS) if spread else np.array([weight[0] - 0.5, weight[0] + 0.5])
    return [
        {"from": round(float(low), 4), "to": round(float(high), 4), "count": int(count)}
        for low, high, count in zip(edges[:-1], edges[1:], np.histogram(weight, edges)[0], strict=True)
        if count
    ]


def weights(rows: Sequence[Mapping[str, Any]], *, effective: float, n: int) -> Figure:
    """The histogram of these rows with a logarithmic axis of counts: otherwise the few large weights would not be seen."""
    largest = max((row["count"] for row in rows), default=1)
    ticks = [0, *(10**power for power in range(12) if 10**power <= largest)]
    chart = (
        alt.Chart(inline(rows))
        .mark_bar(binSpacing=0.5, color="#7F7F7F")
        .encode(
            x=alt.X("from:Q", bin=alt.BinParams(binned=True), title="importance weight"),
            x2="to:Q",
            y=alt.Y(
                "count:Q",
                title="training examples (log scale)",
                scale=alt.Scale(type="symlog"),
                axis=alt.Axis(values=ticks, format=",d"),
            ),
            tooltip=[
                tip("from", "weight from", ".2f"),
                tip("to", "weight to", ".2f"),
                tip("count", "training examples", ",d"),
            ],
        )
    )
    return Figure(
        name="weights",
        title="Importance weights",
        description=(
            f"Histogram of the weights in training. Together they are worth {effective:,.0f} equally weighted examples of {n:,} "
            "(effective sample size)."
        ),
        columns={"from": "weight from", "to": "to", "count": "examples"},
        rows=rows,
        chart=chart,
    )
