"""The measurements of the experiment by (n, rank): means over seeds with standard errors, and scaling exponents."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from umix.theory.experiment import Measured
from umix.theory.weighted_loss import Estimate


@final
@dataclass(frozen=True)
class SeedSummary:
    """All seeds of one (n, rank): mean gaps minus the ``luck`` of the sample, risks and bounds.

    ``risk_change`` is the risk of mixup minus that of ERM, paired by seed; below 0 mixup is better.
    """

    n: int
    rank: int
    dimension: int
    seeds: int
    erm_gap: Estimate
    mixup_gap: Estimate
    erm_risk: Estimate
    risk_change: Estimate
    rho: float
    gamma: float
    rank_bound: float
    dimension_bound: float
    #: The largest mixup gap over the seeds, luck included, divided by the bound with the rank; at most 1 by the theorem.
    tightest: float


def by_cell(measured: Iterable[Measured]) -> list[SeedSummary]:
    """One summary for every measured (rank, n), sorted."""
    groups: dict[tuple[int, int], list[Measured]] = {}
    for one in measured:
        groups.setdefault((one.rank, one.n), []).append(one)
    return [_cell(groups[key]) for key in sorted(groups)]


def exponents(cells: Sequence[SeedSummary], fit: str) -> tuple[float, float]:
    """(a, b) of the least-squares fit ``gap ~ rank^a / n^b`` to the cells' gaps of ``fit`` (erm or mixup); the bounds have (½, ½).

    Cells whose mean gap is not above twice its standard error are left out: their logarithm is noise.
    """
    gaps = [(cell, cell.erm_gap if fit == "erm" else cell.mixup_gap) for cell in cells]
    clear = [(cell, gap) for cell, gap in gaps if gap.mean > 2 * gap.error]
    if len({cell.n for cell, _ in clear}) < 2 or len({cell.rank for cell, _ in clear}) < 2:
        return float("nan"), float("nan")
    rows = np.array([[1.0, np.log(cell.rank), -np.log(cell.n)] for cell, _ in clear])
    _, a, b = np.linalg.lstsq(rows, np.log([gap.mean for _, gap in clear]), rcond=None)[0]
    return float(a), float(b)


def _cell(rows: Sequence[Measured]) -> SeedSummary:
    first = rows[0]
    return SeedSummary(
        n=first.n,
        rank=first.rank,
        dimension=first.dimension,
        seeds=len(rows),
        erm_gap=_estimate([row.erm_gap - row.luck for row in rows]),
        mixup_gap=_estimate([row.mixup_gap - row.luck for row in rows]),
        erm_risk=_estimate([row.erm_risk for row in rows]),
        risk_change=_estimate([row.mixup_risk - row.erm_risk for row in rows]),
        rho=float(np.mean([row.rho for row in rows])),
        gamma=float(np.mean([row.gamma for row in rows])),
        rank_bound=float(np.mean([row.rank_bound.total for row in rows])),
        dimension_bound=float(np.mean([row.dimension_bound.total for row in rows])),
        tightest=max(row.mixup_gap / row.rank_bound.total for row in rows),
    )


def _estimate(values: Sequence[float]) -> Estimate:
    return Estimate(float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values))))
