"""The rates of groups, margins and classes of new data, beside those that the run had on test."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
import torch
from numpy.typing import NDArray

from umix.bench.evaluation.evaluated import NewRate
from umix.bench.runs.record import RunRecord
from umix.bench.runs.summary import Summary
from umix.bench.runs.unit_titles import unit_titles
from umix.core.evaluation import units_of, worst_unit
from umix.core.statistics import wilson
from umix.core.words import quoted
from umix.data.groups import Groups
from umix.data.rows.known_rows import column_groups
from umix.data.rows.role_columns import texts

if TYPE_CHECKING:
    import polars

_LISTED = 3  # groups in a sentence


@final
@dataclass(frozen=True, eq=False)
class Units:
    """Who is in what, ``member`` [n, units]: groups, then margins, then classes, by the names that the run has for them."""

    names: Sequence[str]
    member: NDArray[np.bool_]
    n_groups: int
    trained: Sequence[str]  # all groups that training had by the same columns

    @property
    def groups(self) -> dict[str, int]:
        """The rows of each group."""
        return dict(zip(self.names, self.member[:, : self.n_groups].sum(axis=0).tolist(), strict=False))

    def of(self, name: str) -> NDArray[np.bool_]:
        """Who is in ``name``, [n]."""
        return self.member[:, self.names.index(name)]


def train_sizes(record: RunRecord) -> dict[str, int]:
    """The training rows of every group, margin and class of the run."""
    sizes = [*record.train_sizes, *record.train_margin_sizes, *record.train_class_sizes]
    return dict(zip(record.unit_names, sizes, strict=False))


def units_in(record: RunRecord, frame: "polars.DataFrame", y: NDArray[np.int64]) -> tuple[Units, list[str]]:
    """The units of the rows of ``frame``, whose classes are ``y`` [n], and notes about groups that cannot be compared."""
    groups, notes = _groups(record, frame, y)
    # One column of several: the run has its groups as margins.
    alone = f" ({groups.columns[1]})" if len(groups.columns) == 2 < len(record.group_columns) else ""
    names = [f"{name}{alone}" for name in groups.names] + [f"{one.name} ({one.column})" for one in groups.margins]
    names += [f"class {quoted(name)}" for name in record.classes]
    by_class = y[:, None] == np.arange(len(record.classes))
    member = np.concatenate([groups.member.numpy(), groups.in_margins.numpy(), by_class], axis=1)
    trained = record.groups if len(groups.columns) == len(record.group_columns) else []
    if alone:
        trained = [name for name in record.unit_names[len(record.groups) :] if name.endswith(alone)]
    units, known, titles = Units(names, member, len(groups.names), trained), train_sizes(record), unit_titles(record)
    if new := [name for name, size in units.groups.items() if size and name not in known]:
        notes.append(f"Groups that training did not have: {_listed(new)}.")
    if gone := [name for name in trained if known.get(name) and not units.groups.get(name)]:
        notes.append(f"Groups that the new data do not have: {_listed([titles.get(name, name) for name in gone])}.")
    return units, notes


def new_rates(
    record: RunRecord, units: Units, correct: NDArray[np.bool_], test: Summary
) -> tuple[dict[str, NewRate], str | None]:
    """The rate of every unit that has rows, and which is the worst; None where nothing is judged, as without groups."""
    hits, sizes = units.member[correct].sum(axis=0), units.member.sum(axis=0)
    first_class = len(units.names) - len(record.classes)
    groups, margins, classes = slice(units.n_groups), slice(units.n_groups, first_class), slice(first_class, None)
    composition = np.stack(
        [units.member[of_class, :first_class].sum(axis=0) for of_class in units.member[:, classes].T], axis=1
    )
    worst = worst_unit(
        units_of(
            hits[groups],
            sizes[groups],
            hits[classes],
            sizes[classes],
            margin_hits=hits[margins],
            margin_sizes=sizes[margins],
            composition=composition[groups],
            margin_composition=composition[margins],
            least=record.min_group,
        )
    )
    judged = worst.judged if units.n_groups else sizes >= max(1, record.min_group)
    known, on_test, rates = train_sizes(record), test.unit_rates, {}
    for place in np.flatnonzero(sizes).tolist():
        name, hit, size = units.names[place], int(hits[place]), int(sizes[place])
        interval, before = wilson(hit, size), on_test.get(name)
        rates[name] = NewRate(
            hits=hit,
            size=size,
            rate=hit / size,
            low=interval.low,
            high=interval.high,
            judged=bool(judged[place]),
            share=size / len(correct),
            train_share=known[name] / record.n_train if name in known and record.n_train else None,
            test_rate=None if before is None else before.rate,
            below_test=bool(before and before.size and interval.high < wilson(before.hits, before.size).low),
        )
    return rates, None if worst.index is None else units.names[worst.index]


def _groups(record: RunRecord, frame: "polars.DataFrame", y: NDArray[np.int64]) -> tuple[Groups, list[str]]:
    """The groups of the rows by the run's group columns, as far as these are there, and a note about those that are not."""
    import polars

    columns = record.group_columns[1:]
    there = [name for name in columns if name in frame.columns and texts(frame[name]).null_count() < len(frame)]
    notes = []
    if missing := [name for name in columns if name not in there]:
        by = f"rates are by {', '.join(there) or 'class'}"
        notes.append(
            f"Rates by {', '.join(missing)} cannot be shown: the data have no such column, or it is blank; {by}."
        )
    elif record.groups and not columns:
        notes.append(
            "Rates by group cannot be shown: the groups of this run do not come from columns; rates are by class."
        )
    if not there:
        return Groups(torch.zeros(len(y), 0, dtype=torch.bool), ()), notes
    values = dict(zip(record.group_columns, record.group_values, strict=True))
    series = []
    for column in (frame[name] for name in there):
        words = not all(value.startswith(f"{column.name}=") for value in values[column.name])
        is_text = column.dtype in (polars.String, polars.Categorical, polars.Enum)
        series.append(texts(column) if words and not is_text else column)  # the type decides how values are named
    blanks = any(f"{name}=missing" in values[name] for name in there)
    label, *_ = record.group_columns
    return column_groups(y, values[label], series, label=label, blanks="group" if blanks else "unknown"), notes


def _listed(names: Sequence[str]) -> str:
    return "; ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
