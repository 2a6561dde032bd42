"""The rows whose groups are known and may be used: what is to be predicted from them, and what they must at least contain."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from umix.core.soft_groups import one_hot
from umix.data.task import Split, Task
from umix.errors import Setting, UserError
from umix.training.trainer import Trainer

Ints = NDArray[np.int64]


@final
@dataclass(frozen=True, eq=False)
class LabelledRows:
    """The rows with a known group that may be used: their numbers in each split, and class, value and group of all of them.

    ``y``, ``t`` and ``group`` [n] go through the splits in the order of ``rows``. The value ``t`` is what is to be predicted: the
    attribute, where it and the class decide the group, else the group. ``user`` is what error messages call the user of these rows.
    """

    user: str
    task: Task
    rows: Mapping[str, Ints]
    y: Ints
    t: Ints
    group: Ints

    @classmethod
    def of(cls, trainer: Trainer, user: str) -> Self:
        """The labelled rows of validation unless groups are only reported, and of training where groups may train."""
        task = trainer.task
        usable = {name: task.splits[name] for name in usable_splits(trainer)}
        rows = {name: np.flatnonzero(part.some_groups.cpu().numpy() >= 0) for name, part in usable.items()}
        return cls(user, task, rows, *_labels_of(usable, rows))

    @cached_property
    def group_of(self) -> Ints:
        """The group of a class and a value, [classes, values]; -1 where no labelled row has them."""
        group_of = np.full((self.task.n_classes, self.t.max(initial=-1) + 1), -1)
        group_of[self.y, self.t] = self.group
        return group_of

    @cached_property
    def counts(self) -> Ints:
        """How many rows have each class and value, [classes, values]."""
        counts = np.zeros(self.group_of.shape, dtype=np.int64)
        np.add.at(counts, (self.y, self.t), 1)
        return counts

    def require_two_groups(self) -> None:
        """Raise unless some class has rows of two groups, and two of one of them."""
        if not len(self.group):
            raise UserError(
                f"{self.user} needs rows whose groups are known and may be used, but there are none; name the columns of the "
                "groups with ",
                Setting("groups"),
                ".",
            )
        pairs, sizes = np.unique(np.stack([self.y, self.group]), axis=1, return_counts=True)
        if len(pairs.T) == len(np.unique(self.y)) or sizes.max() < 2:
            names = ", ".join(self.task.training_groups[g] for g in np.unique(self.group))
            raise UserError(
                f"{self.user} must know rows of two groups of one class, and two rows of one of them, got {len(self.group):,} rows "
                f"of {names}; fill in the groups of more rows."
            )

    def to_estimate(self, split: Split, own: Tensor | None) -> "RowsToEstimate":
        """The rows of ``split`` that need an estimate, where its groups ``own`` [n] may be used, -1 where not; None: none may.

        Raises if a class has such rows but no labelled ones.
        """
        known = torch.full((len(split),), -1) if own is None else own
        rows = np.flatnonzero(known.numpy() < 0)
        y = split.y.cpu().numpy()[rows]
        missing = [self.task.classes[label] for label in np.setdiff1d(y, self.y)]
        if missing:
            raise UserError(
                f"{self.user} must know groups of every class, but there is no known one of {', '.join(missing)}; fill in some."
            )
        blank = np.flatnonzero(split.some_groups.cpu().numpy() < 0)
        p = one_hot(known, n_groups=len(self.task.training_groups))
        return RowsToEstimate(rows, y, blank if len(blank) else rows, p, self.group_of)


@final
@dataclass(frozen=True, eq=False)
class RowsToEstimate:
    """The rows of a split whose group is to be estimated, and their classes, [rows] each.

    ``blank`` are the rows of the split that have no group in the data, or all rows to estimate where none lacks one: what varies
    over them is what can tell groups apart. ``p`` [n, groups], float64, has a 1 for the known groups of the split and the
    estimates that were ``put`` there.
    """

    rows: Ints
    y: Ints
    blank: Ints
    p: Tensor
    group_of: Ints  # [classes, values], as in ``LabelledRows``

    def put(self, shares: Tensor, which: NDArray[np.bool_] | slice = slice(None)) -> None:
        """Write the probabilities ``shares`` [rows, values] of ``which`` of the rows, all of them by default, into ``p``."""
        group_of = self.group_of[self.y[which]]
        row, value = np.nonzero(group_of >= 0)
        self.p[self.rows[which][row], group_of[row, value]] = shares[row, value].double()


def usable_splits(trainer: Trainer) -> tuple[str, ...]:
    """The splits whose known groups may be used in training; those of a split with other groups than training has tell nothing."""
    allowed = {"test": (), "val": ("val",), "train": ("val", "train")}[trainer.use_groups]
    splits, names = trainer.task.splits, trainer.task.training_groups
    return tuple(name for name in allowed if (splits[name].training_groups or splits[name].groups).names == names)


def _labels_of(splits: Mapping[str, Split], rows: Mapping[str, Ints]) -> tuple[Ints, Ints, Ints]:
    """Class, value and group of the labelled rows, [n] each."""

    def joined(of: Mapping[str, Tensor]) -> Ints:
        found: Ints = np.concatenate([np.zeros(0, np.int64), *(of[name].cpu().numpy()[rows[name]] for name in rows)])
        return found

    y, group = (
        joined({name: split.y for name, split in splits.items()}),
        joined({name: s.some_groups for name, s in splits.items()}),
    )
    attributes = {name: split.attribute for name, split in splits.items() if split.attribute is not None}
    if len(attributes) == len(splits) > 0:
        attribute = joined(attributes)
        cells = len(np.unique(np.stack([y, attribute]), axis=1).T)
        if attribute.min(initial=0) >= 0 and cells == len(np.unique(np.stack([y, attribute, group]), axis=1).T):
            return y, attribute, group
    return y, group, group
