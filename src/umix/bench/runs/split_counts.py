"""The counts of a run's splits as they lie in its record, and whether they fit together."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from operator import le
from typing import Self, final

import numpy as np
from pydantic import Field

from umix.bench.runs.recorded import Recorded
from umix.core.epoch_counts import Counts
from umix.errors import UserError

_SPLITS = ("val", "test")
#: The most examples that a record may count: up to there sums are exact.
MOST = 2**53


@final
class SplitCounts(Recorded):
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
        """The counts as arrays; ``check_fit`` has seen that rows are as long as the sizes."""
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


def check_fit(
    splits: Mapping[str, SplitCounts],
    *,
    groups: Sequence[str],
    margins: int,
    classes: Sequence[str],
    train_sizes: Sequence[int],
) -> None:
    """Refuse, in words, counts that no run can have: of other groups, margins, classes or epochs, or more hits than examples."""
    if splits.keys() != set(_SPLITS):
        raise UserError(f"split_counts must hold val and test, got {', '.join(splits) or 'neither'}")
    for kind, names in (("group", groups), ("class", classes)):
        if len(set(names)) < len(names):
            raise UserError(f"every {kind} must have a name of its own, got {_repeated(names)!r} twice")
    if len(train_sizes) != len(groups):
        raise UserError(f"train_sizes must be one for every group, got {len(train_sizes)} for {len(groups)}")
    epochs = len(splits["val"].class_hits)
    for name, split in splits.items():
        for kind, sizes, wanted in (
            ("group", split.sizes, len(groups)),
            ("margin", split.margin_sizes, margins),
            ("class", split.class_sizes, len(classes)),
        ):
            if len(sizes) != wanted:
                raise UserError(f"{name} must have counts for every {kind}, got {len(sizes)} for {wanted}")
        optional = {
            len(split.margin_hits),
            len(split.quintile_rates),
            len(split.tail_losses),
            len(split.recall_hits),
        } - {0}
        if not epochs or {len(split.hits), len(split.class_hits), *optional} != {epochs}:
            raise UserError("val and test must have counts of the same epochs, at least of one")
        n = sum(split.class_sizes)
        if n > MOST or min(split.sizes, default=0) < 0 or max(split.sizes, default=0) > n:
            raise UserError(
                f"a group of {name} must have at most the {n:.4g} examples of all classes, and these be at most {MOST:.0e}"
            )
        if fault := _fault(split):
            raise UserError(fault.format(name))


def _fault(split: SplitCounts) -> str:
    """What is wrong with the rows of a split, whose name stands for {}; empty if nothing is.

    The lists are compared as they are: to make arrays of them takes longer, and many records are loaded only to be listed.
    """
    n_groups, n_classes = len(split.sizes), len(split.class_sizes)
    if _are_not_all(n_groups, split.hits) or _are_not_all(n_classes, split.class_hits):
        return "every epoch of {} must have a number for each group, class and fifth"
    if split.margin_sizes and not (
        not _are_not_all(len(split.margin_sizes), split.margin_hits)
        and _lie_between(split.margin_hits, split.margin_sizes)
        and _divides(split.margin_composition, split.margin_sizes, n_classes)
    ):
        return "the margins of {} must have hits between 0 and the sizes, and a composition that divides these"
    if not (_lie_between(split.hits, split.sizes) and _lie_between(split.class_hits, split.class_sizes)):
        return "the hits of {} must lie between 0 and the sizes"
    if split.composition and not _divides(split.composition, split.sizes, n_classes):
        return "the composition of {} must divide the size of every group among the classes"
    if split.quintile_rates and _are_not_all(5, split.quintile_rates):
        return "every epoch of {} must have a number for each group, class and fifth"
    if split.quintile_rates and not _lie_between(split.quintile_rates, [1] * 5):
        return "the quintile_rates of {} must lie between 0 and 1"
    if split.recall_hits and not _are_recalls(split.recall_hits, split.composition):
        return "the recall_hits of {} must lie between 0 and the composition"
    return ""


def _are_not_all(length: int, rows: Sequence[Sequence[object]]) -> bool:
    """Whether some of the rows are not of this length."""
    return {*map(len, rows)} != {length}


def _divides(composition: Sequence[Sequence[int]], sizes: Sequence[int], n_classes: int) -> bool:
    """Whether ``composition`` divides these sizes among the classes."""
    if not composition or _are_not_all(n_classes, composition) or min(map(min, composition)) < 0:
        return False
    return [*map(sum, composition)] == sizes


def _are_recalls(recall_hits: Sequence[Sequence[Sequence[int]]], composition: Sequence[Sequence[int]]) -> bool:
    """Whether these are hits of every class within every group, [epochs][groups][classes]."""
    if not composition or _are_not_all(len(composition), recall_hits):
        return False
    if any(_are_not_all(len(composition[0]), epoch) for epoch in recall_hits):
        return False
    of_groups = zip(*recall_hits, strict=True)
    return all(_lie_between(rows, sizes) for rows, sizes in zip(of_groups, composition, strict=True))


def _lie_between(rows: Sequence[Sequence[float]], most: Sequence[float]) -> bool:
    """Whether every number of every row lies between 0 and that of ``most`` in its place; all are of one length."""
    columns = [*zip(*rows, strict=True)]
    return min(map(min, columns), default=0) >= 0 and all(map(le, map(max, columns), most))


def _repeated(names: Sequence[str]) -> str:
    return next(name for place, name in enumerate(names) if name in names[:place])


def known(rate: float) -> float | None:
    """``rate``, or None where it is NaN."""
    return None if np.isnan(rate) else rate
