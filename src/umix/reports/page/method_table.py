"""The table of a study: one row per method, to be sorted by any column."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from umix.bench.runs.record import RunRecord
from umix.core.statistics import Interval, Spread
from umix.reports.comparison import Comparison, compare


@final
@dataclass(frozen=True)
class MethodRow:
    """One method: rates over seeds, the paired difference of its worst rate to the baseline, and the group labels it uses."""

    method: str
    uses: str
    seeds: int
    average: Spread
    worst: Spread
    worst_group: str
    interval: Interval
    gain: Spread | None
    p: float
    collapsed: int

    @property
    def cells(self) -> dict[str, str | float | int | None]:
        """The row for a file: rates in [0, 1]."""
        return {
            "method": self.method,
            "group labels": self.uses,
            "seeds": self.seeds,
            "average": _known(self.average.mean),
            "worst": _known(self.worst.mean),
            "worst group": self.worst_group,
            "interval low": _known(self.interval.low),
            "interval high": _known(self.interval.high),
            "worst, difference": None if self.gain is None else _known(self.gain.mean),
            "p": _known(self.p),
        }


def method_rows(
    task: str, runs: Mapping[str, Sequence[RunRecord]], *, select: str | None, baseline: str | None
) -> list[MethodRow]:
    """The rows of all methods on ``task``, the best worst group first."""
    comparison = compare({task: runs}, select=select, baseline=baseline)
    rows = [_row(comparison, task, label, runs[label], select) for label in comparison.cells[task]]
    return sorted(rows, key=lambda row: (_low(row.worst.mean), _low(row.average.mean)), reverse=True)


def _row(comparison: Comparison, task: str, label: str, records: Sequence[RunRecord], select: str | None) -> MethodRow:
    cell = comparison.cells[task][label]
    names = [record.summary(select).worst_group for record in records if select is None or record.has(select)]
    gain = cell.gains.get("worst")
    return MethodRow(
        method=label,
        uses=cell.uses or "not known",
        seeds=len(cell.seeds),
        average=cell.rates["average"],
        worst=cell.rates["worst"],
        worst_group="; ".join(dict.fromkeys(name for name in names if name is not None)) or "–",
        interval=cell.interval,
        gain=None if gain is None else gain.spread,
        p=math.nan if gain is None else gain.p_flip,
        collapsed=len(cell.collapsed),
    )


def _low(rate: float) -> float:
    return -math.inf if math.isnan(rate) else rate


def _known(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 6)
