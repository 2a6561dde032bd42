"""The counts of a run's splits as they lie in its record, and whether they fit together."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self, final

import numpy as np
from pydantic import Field

from umix.core.epoch_counts import Counts
from umix.errors import UserError
from umix.settings import Settings

_SPLITS = ("val", "test")


@final
class SplitCounts(Settings):
    """Counts of one split as they lie in the file."""

    bounded: ClassVar[bool] = False

    hits: list[list[int]]  # [epochs][groups]
    sizes: list[int]
    class_hits: list[list[int]]  # [epochs][classes]
    class_sizes: list[int]
    quintile_rates: list[list[float]] = Field(default_factory=list)  # [epochs][5], after a first stage
    tail_losses: list[float | None] = Field(default_factory=list)  # [epochs], of validation
    composition: list[list[int]] = Field(default_factory=list)  # [groups][classes]
    recall_hits: list[list[list[int]]] = Field(
        default_factory=list
    )  # [epochs][groups][classes], of groups with several

    @classmethod
    def of(cls, counts: Counts) -> Self:
        """The counts as they are written into a record."""
        rows = {name: getattr(counts, name).tolist() for name in cls.model_fields}
        return cls(**rows | {"tail_losses": [known(loss) for loss in counts.tail_losses.tolist()]})

    def arrays(self) -> Counts:
        """The counts as arrays; rows of other lengths than the sizes are a ValueError."""
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
            recall_hits=np.array(self.recall_hits, dtype=np.int64).reshape(
                len(self.recall_hits), *((len(self.sizes), len(self.class_sizes)) if self.recall_hits else (0, 0))
            ),
        )


def check_fit(
    splits: Mapping[str, SplitCounts], *, groups: Sequence[str], classes: Sequence[str], train_sizes: Sequence[int]
) -> None:
    """Refuse, in words, counts that no run can have: of other groups, classes or epochs, or more hits than examples."""
    if not splits.keys() >= set(_SPLITS):
        raise UserError(f"split_counts must hold val and test, got {', '.join(splits) or 'neither'}")
    if len(train_sizes) != len(groups):
        raise UserError(f"train_sizes must be one for every group, got {len(train_sizes)} for {len(groups)}")
    epochs = len(splits["val"].class_hits)
    for name, split in splits.items():
        try:
            counts = split.arrays()
        except (ValueError, OverflowError):
            raise UserError(f"every epoch of {name} must have a number for each group, class and fifth") from None
        for kind, sizes, names in (("group", counts.sizes, groups), ("class", counts.class_sizes, classes)):
            if len(sizes) != len(names):
                raise UserError(f"{name} must have counts for every {kind}, got {len(sizes)} for {len(names)}")
        optional = {len(counts.quintile_rates), len(counts.tail_losses)} - {0}
        if not epochs or {len(counts.hits), len(counts.class_hits), *optional} != {epochs}:
            raise UserError("val and test must have counts of the same epochs, at least of one")
        if not (_possible(counts.hits, counts.sizes) and _possible(counts.class_hits, counts.class_sizes)):
            raise UserError(f"the hits of {name} must lie between 0 and the sizes")


def _possible(hits: np.ndarray, sizes: np.ndarray) -> bool:
    return bool(((hits >= 0) & (hits <= sizes)).all())


def known(rate: float) -> float | None:
    """``rate``, or None where it is NaN."""
    return None if np.isnan(rate) else rate
