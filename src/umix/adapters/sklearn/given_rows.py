"""Rows of arrays in memory, divided into training and validation rows, as the task that a trainer takes; no test rows."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, final

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from pydantic import Field
from sklearn.utils.validation import _check_sample_weight

from umix.adapters.given_groups import cells
from umix.adapters.sklearn.numbers import Floats
from umix.core.streams import stream
from umix.core.subsets import stratified_split
from umix.data.rows.known_rows import KnownRows, stratum_of
from umix.data.rows.role_columns import Rows
from umix.data.task import Task
from umix.errors import UserError
from umix.methods.method import Method
from umix.methods.registry import METHODS
from umix.settings import Settings


@final
class Division(Settings):
    """How the given rows are divided."""

    val_share: float = Field(gt=0, lt=1)


def divide_rows(
    y: Rows, classes: tuple[str, ...], *, groups: Any, weight: Floats | None, val_share: float, seed: int
) -> KnownRows:
    """The rows divided at random, stratified by class, and by group where ``groups`` gives each row a value.

    Rows of ``weight`` 0 are in no split. Equal weights are the same as none.
    """
    known = None if groups is None else cells(y, classes, groups)
    used = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
    stratum = y if known is None else stratum_of(known, y)
    train, val = stratified_split(stratum[used], share=1 - val_share, rng=stream(seed, "data", "rows/split"))
    if not len(val):
        kind = "class" if known is None else "group"
        raise UserError(
            f"Some {kind} must have two rows, one to train on and one to validate with, but of {len(used)} rows no {kind} has two."
        )
    rows = {"train": used[train], "val": used[val], "test": np.zeros(0, dtype=np.int64)}
    return KnownRows(torch.from_numpy(y), classes, known, rows, _counts(weight, rows["train"]))


def undivided(known: KnownRows, weight: Floats | None) -> KnownRows:
    """The rows of ``known``, all of which train; those that were held out validate too."""
    used = np.sort(np.concatenate([known.rows["train"], known.rows["val"]]))
    return replace(known, rows={**known.rows, "train": used}, weight=_counts(weight, used))


def _counts(weight: Floats | None, rows: Rows) -> torch.Tensor | None:
    """What each of ``rows`` counts for, of mean 1; None where all count the same."""
    if weight is None or (weight[weight > 0] == weight[rows[0]]).all():
        return None
    given = weight[rows]
    return torch.from_numpy((given / given.mean()).astype(np.float32))


def task_of(known: KnownRows, x: Mapping[str, NDArray[Any]]) -> Task:
    """The task of the inputs ``x`` [rows, ...] of each split; its test split is empty."""
    splits = {name: known.split(name, torch.from_numpy(part)) for name, part in x.items()}
    return Task("rows", splits, known.classes)


def checked_weight(given: ArrayLike | None, x: Any, recipe: Method) -> Floats | None:
    """What each row of ``x`` counts for, as it is given, float64 [n]; raises where ``recipe`` takes no weights."""
    if given is None:
        return None
    if not recipe.takes_weights:
        able = ", ".join(name for name, kind in METHODS.items() if kind.takes_weights)
        raise UserError(
            f"sample_weight must be left out for method={recipe.name!r}: a row of weight 2 cannot count as two in its risk; "
            f"{able} can do it."
        )
    weight: Floats = _check_sample_weight(given, x, dtype=np.float64, ensure_non_negative=True)
    return weight
