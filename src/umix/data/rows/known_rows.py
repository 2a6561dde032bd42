"""Class, groups, split and weight of every row, read from the columns that have these roles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
import torch
from torch import Tensor

from umix.core.words import counted, group_name
from umix.data.checks.group_findings import absent_classes, small_groups
from umix.data.groups import Groups
from umix.data.inputs import Inputs
from umix.data.rows.division import divide
from umix.data.rows.role_columns import (
    Blanks,
    Rows,
    check_id,
    encode_attribute,
    encode_labels,
    named,
    row_weights,
    split_by_column,
    texts,
)
from umix.data.rows.row_roles import RowRoles, split_meanings
from umix.data.task import Augment, Split, Transform
from umix.errors import Setting, UserError, unknown

if TYPE_CHECKING:
    import polars

#: The most groups that a task has: membership is a matrix with a column for each group.
MOST_GROUPS = 1000
_ALL = slice(None)  # of the rows; unlike their numbers it copies nothing


@final
@dataclass(frozen=True, eq=False)
class KnownRows:
    """What is known of all rows: class, groups (None: there are none), the rows of each split, weights of training rows."""

    y: Tensor
    classes: tuple[str, ...]
    groups: Groups | None
    rows: Mapping[str, Rows]
    weight: Tensor | None  # of the training rows, [len(rows["train"])], mean 1
    notes: tuple[str, ...] = ()

    def split(
        self, name: str, x: Tensor | Inputs, *, transform: Transform | None = None, augment: Augment | None = None
    ) -> Split:
        """The split ``name``, whose inputs are ``x``."""
        index = torch.from_numpy(self.rows[name])
        none = Groups(torch.zeros(len(index), 0, dtype=torch.bool), ())
        groups = none if self.groups is None else self.groups.rows(index)
        weight = self.weight if name == "train" else None
        return Split(
            x, self.y[index], groups, transform=transform, augment=augment, weight=weight, origin=self.rows[name]
        )


def check_roles(roles: RowRoles, known: list[str], title: str) -> None:
    """Raise where a named column is not among ``known``, or has two roles."""
    single = {role: getattr(roles, role) for role in ("label", "split", "id", "weight", "split_by", "split_by_date")}
    by_role = {"groups": roles.groups, **{role: (name,) for role, name in single.items()}}
    for role, names in by_role.items():
        for name in names:
            if name is not None and name not in known:
                raise unknown(f"{role} column of {title}", name, known)
    for name in roles.groups:
        if roles.groups.count(name) > 1:
            raise UserError("Every column of ", Setting("groups"), f" must be named once, got {name!r} twice.")
    for name in roles.single:
        if roles.single.count(name) > 1 or name in roles.groups:
            raise UserError(
                f"The column {name!r} must have one role among label, groups, split, id and weight; it has two."
            )
    ways = [name for name in ("split", "split_by_date", "split_by", "folds") if getattr(roles, name) is not None]
    if len(ways) > 1 and ways != ["split_by", "folds"]:
        raise UserError(
            "Rows must be divided in one way, got ", Setting(ways[0]), " and ", Setting(ways[1]), "; leave one out."
        )


def known_rows(roles: RowRoles, frame: "polars.DataFrame") -> KnownRows:
    """What the columns of ``frame`` say about its rows; without a split column ``divide`` divides them."""
    if roles.id is not None:
        check_id(frame[roles.id])
    rows, used, notes = _named_splits(roles, frame)
    y, classes = encode_labels(frame[roles.label][used])
    groups = _groups(roles, frame[used], y, classes)
    y, groups = _of_all_rows(y, groups, used, len(frame))
    stratum = y if groups is None else stratum_of(groups, y)
    if rows is None or "val" not in rows:
        if rows is not None:
            notes.append(
                f"{roles.split!r} names no val: {roles.val_share:.0%} of train was taken, stratified, at random."
            )
        rows, of_division = divide(roles, frame, stratum, rows)
        notes += of_division
    if groups is not None and (blank := int((~groups.member[used].any(dim=1)).sum())):
        notes.append(_blank_words(blank, [name for name in roles.groups if texts(frame[name][used]).null_count()]))
    notes += _check_classes(rows, y, classes)
    weight = None
    if roles.weight is not None:
        weight = torch.from_numpy(row_weights(frame[roles.weight], rows["train"]))
        notes.append(f"Training rows count by {roles.weight!r}; all rates count every row once.")
    return KnownRows(torch.from_numpy(y), classes, groups, rows, weight, tuple(notes))


def _named_splits(roles: RowRoles, frame: "polars.DataFrame") -> tuple[dict[str, Rows] | None, Rows | slice, list[str]]:
    """The rows of each split that a column names (None: no column), all rows that are used, and a note if some are not."""
    if roles.split is None:
        return None, _ALL, []
    values = None if roles.split_values is None else split_meanings(roles.split_values)
    rows = split_by_column(frame[roles.split], values)
    left_out = len(frame) - sum(map(len, rows.values()))
    if not left_out:
        return rows, _ALL, []
    note = f"{counted(left_out, 'row')} left out, whose {roles.split!r} is none of {', '.join(values or ())}."
    return rows, np.sort(np.concatenate(list(rows.values()))), [note]


def _of_all_rows(y: Rows, groups: Groups | None, used: Rows | slice, n: int) -> tuple[Rows, Groups | None]:
    """Class and groups, known of the rows ``used``, for all ``n`` rows; the others have no group, and their class is no matter."""
    if isinstance(used, slice):
        return y, groups
    all_y = np.zeros(n, dtype=y.dtype)
    all_y[used] = y
    if groups is None:
        return all_y, None
    place, known = torch.zeros(n, dtype=torch.int64), torch.zeros(n, dtype=torch.bool)
    place[used], known[used] = torch.arange(len(used)), True
    return all_y, groups.rows(place).known_for(known)


def stratum_of(groups: Groups, y: Rows) -> Rows:
    """The group of every row, [n], to divide the rows by; rows without a group are divided by class."""
    codes: Rows = groups.codes.numpy()
    return np.where(codes >= 0, codes, len(groups.names) + y)


def _blank_words(blank: int, columns: Sequence[str]) -> str:
    """The sentence about the rows whose group is not known, as some of these ``columns`` are blank there."""
    one = f"{counted(blank, 'row')} {'has' if blank == 1 else 'have'} no group (blank in {' or '.join(columns)}): "
    return f"{one}used in training and in the average, and in the rates of the group columns that are filled in."


def _check_classes(rows: Mapping[str, Rows], y: Rows, classes: tuple[str, ...]) -> list[str]:
    """Notes about classes without rows in val or test; raises where a class has no training row."""
    counts = {}
    for name, index in rows.items():
        if not len(index):
            raise UserError(f"The split {name} must have rows, but it is empty; the table is too small to be divided.")
        counts[name] = dict(zip(classes, np.bincount(y[index], minlength=len(classes)).tolist(), strict=True))
        absent = [label for label, size in counts[name].items() if not size]
        if absent and name == "train":
            raise UserError(f"The split train must have every class, but it has no row of {absent[0]!r}.")
    return [finding.note for finding in absent_classes(counts)]


def small_group_notes(splits: Mapping[str, Split]) -> list[str]:
    """A note if some groups are too small to have a rate worth reading."""
    counts = {
        name: dict(zip(split.groups.names, split.groups.sizes.tolist(), strict=True)) for name, split in splits.items()
    }
    titles = next(iter(splits.values())).groups.titles
    return [finding.note for finding in small_groups(counts, titles)]


def _groups(roles: RowRoles, frame: "polars.DataFrame", y: Rows, classes: tuple[str, ...]) -> Groups | None:
    if not roles.groups:
        return None
    labels = [named(frame[roles.label], name) for name in classes]
    columns = [frame[name] for name in roles.groups]
    return column_groups(y, labels, columns, label=roles.label, blanks=roles.blanks)


def column_groups(
    y: Rows, labels: Sequence[str], columns: Sequence["polars.Series"], *, label: str, blanks: Blanks = "unknown"
) -> Groups:
    """Groups of label × every combination of the columns' values that occurs; a row with a blank has no group."""
    attribute, names = encode_attribute(columns, blanks=blanks), [column.name for column in columns]
    if not attribute.values:
        raise UserError(
            Setting("groups"),
            f" must be known in some row, but {', '.join(names)} is blank in all; name other columns or none.",
        )
    if len(labels) * attribute.most > MOST_GROUPS:
        raise UserError(
            Setting("groups"),
            f" must make at most {MOST_GROUPS} groups, got {len(labels)} classes × {attribute.most} values of "
            f"{', '.join(names)}; name fewer columns or cut them into ranges.",
        )
    return Groups.cells(
        torch.from_numpy(y),
        torch.from_numpy(attribute.codes),
        labels=labels,
        attributes=list(map(group_name, attribute.values)),
        columns=(label, *names),
        values=attribute.values,
        by_column=[(torch.from_numpy(codes), values) for codes, values in attribute.by_column],
    )
