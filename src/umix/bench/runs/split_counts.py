"""The counts of a run's splits: as they lie in its record, and the hits of every candidate threshold in a file beside it.

Epoch and biases are chosen from these hits together. Where a run has no groups, the file also has the rates of the fifths of test
in order of uncertainty under every threshold.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Self, final

import numpy as np
from pydantic import Field

from umix.core.epoch_counts import Counts
from umix.run_folder import THRESHOLDS
from umix.store import Stored, read_arrays, write_arrays

_KIND = "thresholds"
_FIFTHS = "{} quintiles"


@final
class SplitCounts(Stored):
    """Counts of one split as they lie in the file."""

    hits: list[list[int]]  # [epochs][groups]
    sizes: list[int]
    class_hits: list[list[int]]  # [epochs][classes]
    class_sizes: list[int]
    quintile_rates: list[list[float]] = Field(default_factory=list)  # [epochs][5], after a first stage
    tail_losses: list[float | None] = Field(default_factory=list)  # [epochs], of validation
    composition: list[list[int]] = Field(default_factory=list)  # [groups][classes]
    margin_hits: list[list[int]] = Field(default_factory=list)  # [epochs][margins]
    margin_sizes: list[int] = Field(default_factory=list)
    margin_composition: list[list[int]] = Field(default_factory=list)  # [margins][classes]
    recall_hits: list[list[list[int]]] = Field(
        default_factory=list
    )  # [epochs][groups][classes], of groups with several

    @classmethod
    def of(cls, counts: Counts) -> Self:
        """The counts as they are written into a record."""
        rows = {name: getattr(counts, name).tolist() for name in cls.model_fields}
        return cls(**rows | {"tail_losses": [known(loss) for loss in counts.tail_losses.tolist()]})

    @cached_property
    def arrays(self) -> Counts:
        """The counts as arrays."""
        return Counts(
            hits=np.array(self.hits, dtype=np.int64).reshape(len(self.hits), len(self.sizes)),
            sizes=np.array(self.sizes, dtype=np.int64),
            class_hits=np.array(self.class_hits, dtype=np.int64).reshape(len(self.class_hits), len(self.class_sizes)),
            class_sizes=np.array(self.class_sizes, dtype=np.int64),
            quintile_rates=np.array(self.quintile_rates, dtype=np.float64).reshape(len(self.quintile_rates), 5),
            tail_losses=np.array(self.tail_losses, dtype=np.float64),  # None becomes NaN
            composition=np.array(self.composition, dtype=np.int64).reshape(
                len(self.composition), len(self.class_sizes)
            ),
            margin_hits=np.array(self.margin_hits, dtype=np.int64).reshape(len(self.hits), len(self.margin_sizes)),
            margin_sizes=np.array(self.margin_sizes, dtype=np.int64),
            margin_composition=np.array(self.margin_composition, dtype=np.int64).reshape(
                len(self.margin_composition), len(self.class_sizes)
            ),
            recall_hits=np.array(self.recall_hits, dtype=np.int64).reshape(
                len(self.recall_hits), *((len(self.sizes), len(self.class_sizes)) if self.recall_hits else (0, 0))
            ),
        )


def write_thresholds(directory: Path, counts: Mapping[str, Counts]) -> None:
    """Write the candidate biases and their hits on every split; nothing where they were not counted."""
    if not all(split.has_thresholds for split in counts.values()):
        return
    arrays = {"biases": next(iter(counts.values())).biases} | {
        name: split.threshold_hits.astype(np.int32) for name, split in counts.items()
    }
    arrays |= {
        _FIFTHS.format(name): split.threshold_quintiles
        for name, split in counts.items()
        if len(split.threshold_quintiles)
    }
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    write_arrays(directory / THRESHOLDS, contiguous, {"kind": _KIND})


def with_thresholds(counts: Mapping[str, Counts], directory: Path | None) -> dict[str, Counts]:
    """``counts`` with the thresholds that the run in ``directory`` keeps; of very many groups and classes it keeps none."""
    path = None if directory is None else directory / THRESHOLDS
    if path is None or not path.exists():
        return dict(counts)
    arrays, _ = read_arrays(path, kind=_KIND)
    return {
        name: replace(
            split,
            biases=arrays["biases"],
            threshold_hits=arrays[name],
            threshold_quintiles=arrays.get(_FIFTHS.format(name), split.threshold_quintiles),
        )
        for name, split in counts.items()
    }


def known(rate: float) -> float | None:
    """``rate``, or None where it is NaN."""
    return None if np.isnan(rate) else rate
