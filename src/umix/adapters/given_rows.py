"""Rows of arrays in memory, divided into training and validation rows, as the task that a trainer takes; no test rows."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from umix.core.streams import stream
from umix.core.subsets import stratified_split
from umix.data.arrays.array_file import columns
from umix.data.groups import Groups
from umix.data.rows.known_rows import KnownRows, stratum_of
from umix.data.rows.role_columns import Rows, encode_attribute
from umix.data.task import Task
from umix.errors import UserError

Floats = NDArray[np.floating[Any]]


def divide_rows(
    y: Rows, classes: tuple[str, ...], *, groups: Any, weight: Floats | None, val_share: float, seed: int
) -> KnownRows:
    """The rows divided at random, stratified by class, and by group where ``groups`` gives each row a value.

    Rows of ``weight`` 0 are in no split. Equal weights are the same as none.
    """
    known = None if groups is None else _cells(y, classes, groups)
    used = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
    stratum = y if known is None else stratum_of(known, y)
    train, val = stratified_split(stratum[used], share=1 - val_share, rng=stream(seed, "data", "rows/split"))
    if not len(val):
        raise UserError(
            f"Some class must have two rows, one to train on and one to validate with, but of {len(used)} rows no class "
            "has two."
        )
    counts = None
    if weight is not None and not (weight[used] == weight[used[0]]).all():
        given = weight[used[train]]
        counts = torch.from_numpy((given / given.mean()).astype(np.float32))
    rows = {"train": used[train], "val": used[val], "test": np.zeros(0, dtype=np.int64)}
    return KnownRows(torch.from_numpy(y), classes, known, rows, counts)


def task_of(known: KnownRows, x: NDArray[Any]) -> Task:
    """The task of the inputs ``x`` [n, ...] of all rows; its test split is empty."""
    inputs = {name: torch.from_numpy(x[rows]) for name, rows in known.rows.items()}
    return Task("rows", {name: known.split(name, part) for name, part in inputs.items()}, known.classes)


def _cells(y: Rows, classes: tuple[str, ...], given: Any) -> Groups:
    """Groups of label × value, as tables have them; a row with a missing value has no group."""
    values = np.asarray(given)
    if values.dtype.kind == "O":
        values = np.array([None if value is None or value != value else str(value) for value in values], dtype=object)
    attribute, parts = encode_attribute([columns({"groups": values}, n=len(y))["groups"]])
    attributes = [", ".join(part) for part in parts]
    return Groups.cells(torch.from_numpy(y), torch.from_numpy(attribute), labels=classes, attributes=attributes)


def classes_of(y: NDArray[Any], weight: Floats | None) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The labels of rows that count, sorted, and the class of every row, [n]; any for rows that do not count."""
    check_classification_targets(y)
    counted = y if weight is None else y[weight > 0]
    classes = np.unique(counted)
    if len(classes) < 2:
        raise UserError(
            f"The labels must have at least two classes, got {len(classes)} class in {len(counted)} rows that count."
        )
    return classes, np.searchsorted(classes, y).clip(max=len(classes) - 1)
