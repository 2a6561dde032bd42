"""The figures of the paper, from runs of one's own: the simulated data, uncertainty two ways and by group, training accuracy."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from umix.bench.runs.record import RunRecord
from umix.errors import UserError
from umix.reports.charts.curves import Panel, curve_rows, curves
from umix.reports.charts.figure import Figure, LegendEntry, coloured, inline, picked, shaped, tip
from umix.reports.charts.palette import SHAPES, group_colours
from umix.reports.charts.uncertainty import share_rows, shares
from umix.reports.training_examples import Training, rank_minority, training_of


def points_figure(points: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Figure:
    """The simulated data: ``points`` with x, y and group."""
    colours, symbols = group_colours(names, worst=names), dict(zip(names, SHAPES, strict=False))
    chart = (
        alt.Chart(inline(points))
        .mark_point(filled=True, size=18)
        .encode(
            x=alt.X("x:Q", title=None),
            y=alt.Y("y:Q", title=None),
            color=coloured("group", colours),
            shape=shaped("group", symbols),
            opacity=picked("group"),
            tooltip=[tip("group", "group"), tip("x", "x", ".2f"), tip("y", "y", ".2f")],
        )
    )
    sizes = {name: sum(point["group"] == name for point in points) for name in names}
    told = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
    return Figure(
        name="four_moons-data",
        title="Simulated data with four groups",
        description=f"Training points in the plane: {told}.",
        columns={"x": "x", "y": "y", "group": "group"},
        rows=points,
        chart=chart,
        legend=[LegendEntry(name, colours[name], shape=shape) for name, shape in symbols.items()],
    )


def uncertainty_figure(record: RunRecord, *, name: str, title: str) -> Figure:
    """The shares of a run's uncertainty, by group, and how well it finds the minority."""
    training = _known(record)
    if training.member is None:
        raise UserError(f"{record.directory} must know the groups of its training examples; run it again.")
    rows = share_rows(training.uncertainty, training.member, record.groups)
    seen = rank_minority(training.uncertainty, training.member, record.groups)
    area = f", AUROC {seen.auroc:.3f}" if seen else ""
    return shares(rows, _coloured(record), name=name, title=f"{title}{area}", of=training.of)


def training_figure(record: RunRecord, *, name: str) -> Figure:
    """Training accuracy of every group over the epochs of ERM, which is a run's first stage."""
    rates = _known(record).rates()
    if rates is None:
        raise UserError(f"{record.directory} must have a trajectory to show training accuracy; run it again.")
    rows = curve_rows(record.groups, rates)
    title = f"Training accuracy of ERM, {record.task}"
    panel = Panel(name, title, rows, axis="training accuracy, percent", n_groups=len(record.groups))
    return curves(panel, _coloured(record))


def _coloured(record: RunRecord) -> dict[str, str]:
    """The colours of a run's groups; of many groups the smallest in training are coloured."""
    smallest = sorted(record.groups, key=lambda name: record.train_sizes[record.groups.index(name)])
    return group_colours(record.groups, worst=smallest)


def _known(record: RunRecord) -> Training:
    training = training_of(record)
    if training is None:
        raise UserError(f"{record.directory} must have measured uncertainty, but {record.method} does not; run umix.")
    return training
