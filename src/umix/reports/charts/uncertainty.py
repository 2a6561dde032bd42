"""Uncertainty of the training examples: how many of every group have which."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

from umix.reports.charts.curves import group_lines, legend_names
from umix.reports.charts.figure import Figure, tip

_BINS = 20
_MOST_TICKS = 6  # up to so many values, the axis names each
_MOST_GROUPS = 24
#: Smaller groups have no shares worth drawing, unless all groups are that small.
FEW = 10


def share_rows(u: np.ndarray, member: np.ndarray, names: Sequence[str]) -> list[dict[str, Any]]:
    """Which percent of a group's examples have which uncertainty ``u`` [n], for the groups of ``member`` [n, groups].

    ``u`` is mostly a share of the epochs of a window, up to 20: each such share is a row. Otherwise rows are 20 bins, named by
    their middles. Groups with fewer than ten examples have no rows; of many groups, the smallest have.
    """
    values = _values(u)
    place = np.searchsorted((values[1:] + values[:-1]) / 2, u)
    sizes = member.sum(axis=0)
    fewest = FEW if (sizes >= FEW).any() else 1
    kept = sorted([g for g in np.argsort(sizes, kind="stable").tolist() if sizes[g] >= fewest][:_MOST_GROUPS])
    return [
        {
            "group": names[g],
            "size": int(sizes[g]),
            "mean": round(float(u[member[:, g]].mean()), 4),
            "u": round(float(value), 4),
            "share": round(100 * float(count / sizes[g]), 2),
        }
        for g in kept
        for value, count in zip(values, np.bincount(place[member[:, g]], minlength=len(values)), strict=True)
    ]


def _values(u: np.ndarray) -> np.ndarray:
    """The shares 0, 1/k, …, 1 of the smallest k up to 20 that has all of ``u``; the middles of 20 bins where there is none."""
    distinct = np.unique(u)
    for k in range(1, _BINS + 1):
        if np.allclose(distinct * k, (distinct * k).round(), atol=1e-4):
            return np.arange(k + 1) / k
    return (np.arange(_BINS) + 0.5) / _BINS


def shares(
    rows: Sequence[Mapping[str, Any]],
    colours: Mapping[str, str],
    *,
    name: str = "uncertainty",
    title: str = "Uncertainty of the training examples",
    of: str = "epochs",
    window: str = "",
) -> Figure:
    """These rows as a line per group, with a point at every value.

    ``of`` names what the share of wrong predictions is taken over, ``window`` in words which epochs were counted.
    """
    sizes = {row["group"]: row["size"] for row in rows}
    grouped = legend_names({group: colours[group] for group in sizes})
    entries = {
        group: f"{group} (n = {sizes[group]:,})" if entry == group else entry for group, entry in grouped.items()
    }
    values = sorted({row["u"] for row in rows})
    axis = alt.Axis(values=values, format=".2~f") if len(values) <= _MOST_TICKS else alt.Undefined
    encoding = {
        "x": alt.X(
            "u:Q", title=f"uncertainty: share of {window or of} wrong", scale=alt.Scale(domain=[0, 1]), axis=axis
        ),
        "y": alt.Y("share:Q", title="percent of the group's examples", scale=alt.Scale(domainMin=0)),
        "tooltip": [
            tip("group", "group"),
            tip("size", "training examples", ",d"),
            tip("u", "uncertainty", ".2f"),
            tip("share", "of the group, %", ".1f"),
        ],
    }
    layers, legend = group_lines(rows, colours, entries, {"point": alt.OverlayMarkDef(size=40)}, encoding)
    means = {row["group"]: row["mean"] for row in rows}
    highest = max(means, key=lambda group: means[group])
    return Figure(
        name=name,
        title=title,
        description=(
            f"Of each group, how many percent of its n training examples have which uncertainty; groups with fewer than {FEW} are "
            f"not drawn. The most uncertain group drawn is {highest}, with a mean of {means[highest]:.2f}."
        ),
        columns={
            "group": "group",
            "size": "n train",
            "mean": "mean uncertainty",
            "u": "uncertainty",
            "share": "of the group, %",
        },
        rows=rows,
        chart=alt.layer(*layers),
        legend=legend,
    )
