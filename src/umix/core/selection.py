"""Model selection as a pure function over saved validation counts. Test counts are not an argument, on purpose."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from umix.core.rates import average, worst


@dataclass(frozen=True, eq=False)
class Counts:
    """Hits per epoch and sizes of one split: by group (may overlap), by class, and over all examples."""

    hits: np.ndarray  # [epochs, groups]
    sizes: np.ndarray  # [groups]
    class_hits: np.ndarray  # [epochs, classes]
    class_sizes: np.ndarray  # [classes]

    @property
    def epochs(self) -> int:
        return len(self.class_hits)

    @property
    def all_hits(self) -> np.ndarray:
        """Hits over all examples, [epochs]; classes are disjoint, groups need not be."""
        return np.asarray(self.class_hits.sum(axis=1))

    @property
    def n(self) -> int:
        return int(self.class_sizes.sum())


def _worst(val: Counts, epoch: int) -> float:
    return worst(val.hits[epoch], val.sizes)


def _average(val: Counts, epoch: int) -> float:
    return average(val.class_hits[epoch], val.class_sizes)


def _worst_class(val: Counts, epoch: int) -> float:
    return worst(val.class_hits[epoch], val.class_sizes)


def _last(val: Counts, epoch: int) -> float:
    return float(epoch)


#: What each rule calls a good epoch. ``worst`` needs groups in the validation split, the others do not.
RULES: Mapping[str, Callable[[Counts, int], float]] = MappingProxyType(
    {"worst": _worst, "average": _average, "worst_class": _worst_class, "last": _last}
)


def best_epoch(val: Counts, rule: str) -> int:
    """First epoch with the highest validation score under ``rule``; epochs without a score (NaN) never win.

    >>> counts = np.array([[1, 9], [3, 3], [3, 3]]); sizes = np.array([10, 10])
    >>> best_epoch(Counts(counts, sizes, counts, sizes), "worst")
    1
    """
    scores = np.array([RULES[rule](val, epoch) for epoch in range(val.epochs)])
    if not len(scores) or np.isnan(scores).all():
        raise ValueError(f"No epoch has a validation score under the rule {rule!r}, got {val.epochs} epochs.")
    return int(np.nanargmax(scores))
