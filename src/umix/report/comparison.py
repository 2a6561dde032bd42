"""Methods side by side, over seeds: mean, standard deviation and paired differences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from umix.bench.record import RunRecord, Summary

#: The rates of a row, by name: always printed under these words.
RATES = ("average", "adjusted", "group_mean", "worst")


@final
@dataclass(frozen=True)
class Spread:
    """Mean and sample standard deviation over seeds; ``std`` is NaN for a single seed."""

    mean: float
    std: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """The spread of ``values``.

        >>> Spread.of([0.25, 0.75, 0.5])
        Spread(mean=0.5, std=0.25)
        """
        known = np.asarray(values, dtype=np.float64)
        return cls(float(known.mean()), float(known.std(ddof=1)) if len(known) > 1 else float("nan"))


@final
@dataclass(frozen=True)
class Row:
    """One method over its seeds: spreads of the rates, of each group, and of the difference to the baseline on common seeds."""

    label: str
    seeds: tuple[int, ...]
    rates: Mapping[str, Spread]
    groups: Mapping[str, Spread]
    worst_gain: Spread | None


def compare(runs: Mapping[str, Sequence[RunRecord]], *, select: str = "worst") -> list[Row]:
    """A row per label; the first label is the baseline that the others are compared with, seed by seed."""
    summaries = {label: {run.seed: run.summary(select) for run in records} for label, records in runs.items()}
    baseline = next(iter(summaries.values()), {})
    return [_row(label, by_seed, baseline) for label, by_seed in summaries.items()]


def _row(label: str, by_seed: Mapping[int, Summary], baseline: Mapping[int, Summary]) -> Row:
    common = [seed for seed in by_seed if seed in baseline]
    gains = [_rate(by_seed[seed].worst) - _rate(baseline[seed].worst) for seed in common]
    names = next(iter(by_seed.values())).groups
    return Row(
        label=label,
        seeds=tuple(sorted(by_seed)),
        rates={rate: Spread.of([_rate(getattr(summary, rate)) for summary in by_seed.values()]) for rate in RATES},
        groups={name: Spread.of([_rate(summary.groups[name].rate) for summary in by_seed.values()]) for name in names},
        worst_gain=None if by_seed is baseline or not common else Spread.of(gains),
    )


def _rate(rate: float | None) -> float:
    return float("nan") if rate is None else rate
