"""How well uncertainty finds the minority, where groups are known: the rank statistic, and precision and recall at thresholds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

THRESHOLDS = (0.25, 0.5, 0.75)


@final
@dataclass(frozen=True)
class Threshold:
    """Of the examples with uncertainty at least ``u``: how many there are, and which share is of the minority, and of it found."""

    u: float
    chosen: int
    precision: float | None
    recall: float


@final
@dataclass(frozen=True)
class MinorityRanking:
    """How well uncertainty ranks the ``n`` examples of the groups ``names`` above the others."""

    names: tuple[str, ...]
    n: int
    share: float
    auroc: float
    thresholds: tuple[Threshold, ...]


def minority_groups(sizes: np.ndarray) -> np.ndarray:
    """Which groups have fewer examples than groups have on average, bool [groups]; empty ones count as none.

    >>> minority_groups(np.array([800, 40, 40, 800])).tolist()
    [False, True, True, False]
    """
    there = sizes > 0
    return np.asarray(there & (sizes < sizes[there].mean())) if there.any() else there


def auroc(u: np.ndarray, positive: np.ndarray) -> float:
    """How often a random positive has a higher ``u`` than a random negative, ties counted as half; NaN without both kinds.

    >>> auroc(np.array([0.1, 0.5, 0.5, 0.9]), np.array([False, False, True, True]))
    0.875
    """
    n_positive = int(positive.sum())
    n_negative = len(u) - n_positive
    if not n_positive or not n_negative:
        return float("nan")
    _, place, sizes = np.unique(u, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(sizes) - (sizes - 1) / 2  # of all examples with the same u
    ranks = mean_rank[place][positive].sum()
    return float((ranks - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative))


def rank_minority(u: np.ndarray, member: np.ndarray | None, names: Sequence[str]) -> MinorityRanking | None:
    """How well ``u`` [n] finds the minority groups; None where groups are unknown or none is a minority."""
    if member is None:
        return None
    small = minority_groups(member.sum(axis=0))
    rare = np.asarray(member[:, small].any(axis=1))
    area = auroc(u, rare)
    if np.isnan(area):
        return None
    thresholds = tuple(_threshold(u, rare, at) for at in THRESHOLDS)
    chosen = tuple(name for name, is_small in zip(names, small, strict=True) if is_small)
    return MinorityRanking(chosen, int(rare.sum()), float(rare.mean()), area, thresholds)


def _threshold(u: np.ndarray, rare: np.ndarray, at: float) -> Threshold:
    chosen = u >= at
    hits, n = int((chosen & rare).sum()), int(chosen.sum())
    return Threshold(at, n, hits / n if n else None, hits / int(rare.sum()))
