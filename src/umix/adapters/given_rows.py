"""Rows of arrays that somebody holds in memory, as the task a trainer takes: training and validation rows, no test rows."""

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
import torch
from numpy.typing import NDArray

from umix.core.streams import stream
from umix.core.subsets import stratified_split
from umix.data.arrays.array_file import columns
from umix.data.groups import Groups
from umix.data.rows.role_columns import encode_attribute
from umix.data.task import Split, Task
from umix.errors import UserError

Rows = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]


@final
@dataclass(frozen=True, eq=False)
class GivenRows:
    """Class ``y`` [n], groups and weight of all rows, and which are trained on or held out; rows of weight 0 are neither.

    ``weight`` [n] is None where all others weigh the same; ``names`` are those of the classes, all of which are trained on.
    """

    y: Rows
    names: tuple[str, ...]
    groups: Groups
    weight: Floats | None
    train: Rows
    val: Rows

    @classmethod
    def divide(
        cls, y: Rows, names: tuple[str, ...], *, groups: Any, weight: Floats | None, val_share: float, seed: int
    ) -> Self:
        """The rows divided at random, every class alike, and every group where ``groups`` gives each row a value."""
        known = _no_groups(len(y)) if groups is None else _cells(y, names, groups)
        used = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
        stratum = y if groups is None else known.ids.numpy()
        train, val = stratified_split(stratum[used], share=1 - val_share, rng=stream(seed, "data", "rows/split"))
        if weight is not None and (weight[used] == weight[used[0]]).all():
            weight = None
        if not len(val):
            raise UserError(
                f"Some class must have two rows, one to train on and one to validate with, but of {len(used)} rows no class "
                "has two."
            )
        return cls(y, names, known, weight, used[train], used[val])

    def task(self, x: Floats) -> Task:
        """The task of the inputs ``x`` [n, ...]; its test split is empty."""
        rows = {"train": self.train, "val": self.val, "test": np.zeros(0, dtype=np.int64)}
        return Task("rows", {name: self._split(name, x, index) for name, index in rows.items()}, self.names)

    def _split(self, name: str, x: Floats, index: Rows) -> Split:
        weight = None
        if name == "train" and self.weight is not None:
            given = self.weight[index]
            weight = torch.from_numpy((given / given.mean()).astype(np.float32))
        inputs = torch.from_numpy(x[index].astype(np.float32, copy=False))
        where = torch.from_numpy(index)
        return Split(inputs, torch.from_numpy(self.y[index]), self.groups.rows(where), weight=weight)


def _no_groups(n: int) -> Groups:
    return Groups(torch.zeros(n, 0, dtype=torch.bool), ())


def _cells(y: Rows, names: tuple[str, ...], given: Any) -> Groups:
    """Label × value cells, as tables have them; a missing value is a value."""
    values = np.asarray(given)
    if values.dtype.kind == "O":
        values = np.array([None if value is None or value != value else str(value) for value in values], dtype=object)
    attribute, attributes = encode_attribute([columns({"groups": values}, n=len(y))["groups"]])
    return Groups.cells(torch.from_numpy(y), torch.from_numpy(attribute), labels=names, attributes=attributes)
