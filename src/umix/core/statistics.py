"""Statistics of rates: over seeds, within a run, and of pairs of runs. NumPy in float64; randomness only from the given ``rng``."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from umix.core.words import counted

#: The level of every interval.
LEVEL = 0.95
#: Fewer test examples than this in the worst group, or fewer seeds, are too few to trust.
FEW_EXAMPLES = 30
FEW_SEEDS = 3
#: Seeds up to which all sign flips are counted, 4,096; beyond that so many are drawn.
EXACT_SEEDS = 12
DRAWS = 10_000


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
        numbers = np.asarray(values, dtype=np.float64)
        if not len(numbers):
            return cls(math.nan, math.nan)
        return cls(float(numbers.mean()), float(numbers.std(ddof=1)) if len(numbers) > 1 else math.nan)


@final
@dataclass(frozen=True)
class Interval:
    """Ends of an interval at ``LEVEL``; both NaN where there is none."""

    low: float
    high: float


@final
@dataclass(frozen=True)
class Paired:
    """Differences between two methods on common seeds: their spread, a bootstrap interval of the mean and two tests."""

    seeds: int
    spread: Spread
    interval: Interval
    p_flip: float
    p_sign: float


def wilson(hits: float, size: int, *, level: float = LEVEL) -> Interval:
    """Wilson's score interval of the rate ``hits / size``; an empty group has none.

    >>> wilson(0, 10)  # no hit in ten is not proof of a rate of 0
    Interval(low=0.0, high=0.27753279986288915)
    """
    if not size:
        return Interval(math.nan, math.nan)
    z, rate = NormalDist().inv_cdf((1 + level) / 2), hits / size
    centre = (rate + z**2 / (2 * size)) / (1 + z**2 / size)
    half = z / (1 + z**2 / size) * math.sqrt(rate * (1 - rate) / size + z**2 / (4 * size**2))
    return Interval(centre - half if hits > 0 else 0.0, centre + half if hits < size else 1.0)  # exact at the ends


def mean_interval(values: ArrayLike, *, rng: np.random.Generator, draws: int = DRAWS, level: float = LEVEL) -> Interval:
    """Percentile bootstrap interval of the mean of ``values``; a single value has none."""
    numbers = np.asarray(values, dtype=np.float64)
    if len(numbers) < 2:
        return Interval(math.nan, math.nan)
    drawn = numbers[rng.integers(len(numbers), size=(draws, len(numbers)))]
    return _percentiles(drawn.mean(axis=1), level)


def flip_p_value(differences: ArrayLike, *, rng: np.random.Generator, draws: int = DRAWS) -> float:
    """Two-sided p-value of the sign-flip permutation test: how often random signs give a mean as far from 0 as this one.

    Exact, over all 2^n signs, up to 12 differences; beyond that over ``draws`` random signs and the observed ones. With n
    differences it is never below 2^(1-n): three seeds cannot show more than 0.25.

    >>> flip_p_value([0.1, 0.2, 0.3], rng=np.random.default_rng(0))
    0.25
    """
    numbers = np.asarray(differences, dtype=np.float64)
    if not len(numbers):
        return math.nan
    observed = abs(numbers.sum()) - 1e-12 * np.abs(numbers).sum()  # sums that differ by rounding are ties
    if len(numbers) <= EXACT_SEEDS:
        signs = np.array(list(product((1.0, -1.0), repeat=len(numbers))))
        return float((np.abs(signs @ numbers) >= observed).mean())
    signs = rng.choice((1.0, -1.0), size=(draws, len(numbers)))
    return float((1 + (np.abs(signs @ numbers) >= observed).sum()) / (draws + 1))


def sign_p_value(differences: ArrayLike) -> float:
    """Two-sided p-value of the exact sign test; differences of 0 say nothing and are left out.

    >>> sign_p_value([0.1, 0.2, -0.1, 0.0, 0.3])
    0.625
    """
    numbers = np.asarray(differences, dtype=np.float64)
    n, fewer = int((numbers != 0).sum()), int(min((numbers > 0).sum(), (numbers < 0).sum()))
    if not len(numbers):
        return math.nan
    return min(1.0, 2 * sum(math.comb(n, k) for k in range(fewer + 1)) / (1 << n))


def paired(first: ArrayLike, second: ArrayLike, *, rng: np.random.Generator) -> Paired:
    """What ``first`` gains over ``second``, seed by seed: the values at one place belong to one seed.

    A single difference has neither an interval nor a test.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape:
        raise ValueError(f"Pairs must be of the same seeds, got {len(a)} and {len(b)} values.")
    differences = (a - b)[~np.isnan(a - b)]
    interval, p = mean_interval(differences, rng=rng), flip_p_value(differences, rng=rng)
    tests = (p, sign_p_value(differences)) if len(differences) > 1 else (math.nan, math.nan)
    return Paired(len(differences), Spread.of(differences.tolist()), interval, *tests)


def doubts(*, seeds: int, worst_size: int | None, fits: int | None = None) -> list[str]:
    """Why a number should not be trusted yet, in words; ``worst_size`` is how many test examples the worst group has.

    ``fits`` is how many of the seeds' fits differ; by default all do.

    >>> doubts(seeds=2, worst_size=100)
    ['fewer than 3 seeds']
    """
    reasons = [f"fewer than {FEW_SEEDS} seeds"] if seeds < FEW_SEEDS else []
    if fits is not None and fits < seeds:
        reasons = [f"{seeds} seeds are {fits} different fits; copies count once"]
        reasons = reasons if fits > 1 else [f"all {seeds} seeds are the same fit, which counts once"]
    if worst_size is not None and worst_size < FEW_EXAMPLES:
        reasons.append(f"the worst group has {counted(worst_size, 'test example')}, fewer than {FEW_EXAMPLES}")
    return reasons


def _percentiles(values: np.ndarray, level: float) -> Interval:
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))
