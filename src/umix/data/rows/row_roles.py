"""Which columns say what about the rows of one's own data, whatever their inputs are: tables and arrays share it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor

from umix.data.groups import Groups
from umix.data.lazy import Lazy
from umix.data.rows.role_columns import (
    Rows,
    encode_attribute,
    encode_labels,
    named,
    row_weights,
    split_at_random,
    split_by_column,
)
from umix.data.rows.row_notes import check_classes
from umix.data.task import Augment, Split, Transform
from umix.errors import UserError, unknown
from umix.settings import Settings

if TYPE_CHECKING:
    import polars

_MOST_GROUPS = 1000  # membership is a matrix with a column for each


@final
@dataclass(frozen=True, eq=False)
class KnownRows:
    """What is known of all rows: class, groups (None: there are none), the rows of every split and what those of train count."""

    y: Tensor
    classes: tuple[str, ...]
    groups: Groups | None
    rows: Mapping[str, Rows]
    weight: Tensor | None  # of the training rows, [len(rows["train"])], mean 1
    notes: tuple[str, ...]

    def split(
        self, name: str, x: Tensor | Lazy, *, transform: Transform | None = None, augment: Augment | None = None
    ) -> Split:
        """The split ``name``, whose inputs are ``x``."""
        index = torch.from_numpy(self.rows[name])
        none = Groups(torch.zeros(len(index), 0, dtype=torch.bool), ())
        known = none if self.groups is None else self.groups.rows(index)
        weight = self.weight if name == "train" else None
        return Split(
            x, self.y[index], known, transform=transform, augment=augment, weight=weight, origin=self.rows[name]
        )


class RowRoles(Settings):
    """Which column is what, and how the rows are divided."""

    part: ClassVar[str] = "task"

    label: str = Field(description="column of the class to predict")
    groups: tuple[str, ...] = Field(
        (), description="columns whose values, with the label, make the groups; none: no groups"
    )
    split: str | None = Field(
        None, description="column that says train, val or test (0, 1, 2); none: divided at random"
    )
    id: str | None = Field(None, description="column that names each row: not an input, carried into predictions")
    weight: str | None = Field(
        None, description="column of what a training row counts for, relative to others: 2 is as two rows; not an input"
    )
    val_share: float = Field(0.2, gt=0, lt=0.5, description="share of val where no column says")
    test_share: float = Field(0.2, gt=0, lt=0.5, description="share of test where no column says")
    data_seed: int = Field(0, ge=0, description="seed of the random split, independent of the run's seed")

    @model_validator(mode="before")
    @classmethod
    def _several(cls, values: dict[str, Any]) -> dict[str, Any]:
        """``a,b`` is a list of columns."""
        lists = {
            field: tuple(name.strip() for name in values[field].split(",") if name.strip())
            for field in ("groups", "drop")
            if isinstance(values.get(field), str)
        }
        return {**values, **lists}

    @property
    def single(self) -> list[str]:
        """The columns that have one role each and are no inputs, in order."""
        return [name for name in (self.label, self.split, self.id, self.weight) if name is not None]

    def check_roles(self, known: list[str], title: str) -> None:
        """Refuse a column that is not there, or that has two roles."""
        single = {"label": self.label, "split": self.split, "id": self.id, "weight": self.weight}
        roles = {"groups": self.groups, **{role: (name,) for role, name in single.items()}}
        for role, names in roles.items():
            for name in names:
                if name is not None and name not in known:
                    raise unknown(f"{role} column of {title}", name, known)
        for name in self.groups:
            if self.groups.count(name) > 1:
                raise UserError(f"Every column of --groups must be named once, got {name!r} twice.")
        for name in self.single:
            if self.single.count(name) > 1 or name in self.groups:
                raise UserError(
                    f"The column {name!r} must have one role among label, groups, split, id and weight; it has two."
                )

    def known_rows(self, frame: "polars.DataFrame") -> KnownRows:
        """What the columns of ``frame`` say of its rows; a split they do not say is drawn at random, stratified."""
        y, classes = encode_labels(frame[self.label])
        groups, notes = self._groups(frame, y, classes), []
        stratum = y if groups is None else groups.ids.numpy()
        rows = None if self.split is None else split_by_column(frame[self.split])
        if rows is None or "val" not in rows:
            shares = {"val_share": self.val_share, "test_share": self.test_share, "seed": self.data_seed}
            if rows is not None:
                notes.append(
                    f"{self.split!r} names no val: {self.val_share:.0%} of train was taken, stratified, at random."
                )
            rows = split_at_random(stratum, given=rows, **shares)  # type: ignore[arg-type]
        notes += check_classes(rows, y, classes)
        weight = None if self.weight is None else torch.from_numpy(row_weights(frame[self.weight], rows["train"]))
        if weight is not None:
            self._refuse_weightless(weight, y[rows["train"]], classes)
            notes.append(f"Training rows count by {self.weight!r}; all rates count every row once.")
        return KnownRows(torch.from_numpy(y), classes, groups, rows, weight, tuple(notes))

    def _refuse_weightless(self, weight: Tensor, y: Rows, classes: tuple[str, ...]) -> None:
        """Raise where a class counts for nothing in training: as good as absent."""
        for label, total in enumerate(np.bincount(y, weight.numpy(), minlength=len(classes))):
            if not total:
                raise UserError(
                    f"The weight {self.weight!r} must be above 0 in some training row of every class, but it is 0 in all of class "
                    f"{classes[label]!r}."
                )

    def _groups(self, frame: "polars.DataFrame", y: Rows, classes: tuple[str, ...]) -> Groups | None:
        if not self.groups:
            return None
        attribute, names = encode_attribute([frame[name] for name in self.groups])
        if len(classes) * len(names) > _MOST_GROUPS:
            raise UserError(
                f"--groups must make at most {_MOST_GROUPS} groups, got {len(classes)} classes × {len(names)} values of "
                f"{', '.join(self.groups)}; name fewer columns or cut them into ranges."
            )
        labels = [named(frame[self.label], name) for name in classes]
        return Groups.cells(torch.from_numpy(y), torch.from_numpy(attribute), labels=labels, attributes=names)
