"""Group membership as a matrix, because groups may overlap and may be empty in a split."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import torch
from torch import Tensor

from umix.core.words import Margin, bare_columns, group_name, group_title, margins_of
from umix.errors import Setting, UserError


@dataclass(frozen=True, eq=False, repr=False)
class Groups:
    """Which examples are in which group; ``Groups.cells`` and ``Groups.from_ids`` make it.

    Args:
        member: membership, bool [n, groups].
        names: names of the groups.
        attribute: the attribute of each example, int64 [n], where groups are label×attribute cells.
        columns: names of the parts of a group, where groups are combinations of a label and values of columns.
        parts: the label and the values of every group.
        column_values: all values of each column.
        column_codes: which of them each example has, int64 [n, columns], -1 where it is blank; needed only where some examples
            have a blank in some columns, else the group says it.

    """

    member: Tensor
    names: tuple[str, ...]
    attribute: Tensor | None = None
    columns: tuple[str, ...] = ()
    parts: tuple[tuple[str, ...], ...] = ()
    column_values: tuple[tuple[str, ...], ...] = ()
    column_codes: Tensor | None = None

    def __post_init__(self) -> None:
        if self.member.dim() != 2 or self.member.shape[1] != len(self.names) or self.member.dtype != torch.bool:
            raise ValueError(
                f"Groups.member must be bool [n, {len(self.names)}] for {len(self.names)} names, "
                f"got {self.member.dtype} {list(self.member.shape)}."
            )
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"Groups.names must differ, got {self.names}.")
        if self.parts and {len(part) for part in self.parts} != {len(self.columns)}:
            raise ValueError(f"Groups.parts must have a value for each of {self.columns}, got {self.parts}.")
        if len(self.column_values) != len(self.columns):
            raise ValueError(f"Groups.column_values must be those of {self.columns}, got {self.column_values}.")

    def __repr__(self) -> str:
        return f"<Groups of {len(self.member):,} examples: {', '.join(self.names) or 'none'}>"

    @classmethod
    def from_ids(cls, ids: Tensor, names: Sequence[str], *, attribute: Tensor | None = None) -> Self:
        """Disjoint groups from one id per example; -1 is an example whose group is not known.

        >>> Groups.from_ids(torch.tensor([0, 2]), ["a", "b", "c"]).sizes.tolist()
        [1, 0, 1]
        """
        if len(ids) and not -1 <= int(ids.min()) <= int(ids.max()) < len(names):
            raise ValueError(f"Group ids must lie in 0..{len(names) - 1}, got {int(ids.min())}..{int(ids.max())}.")
        member = torch.zeros(
            len(ids), len(names), dtype=torch.bool, device=ids.device
        )  # one_hot would take 8 bytes each
        known = ids.long() >= 0
        rows = known.nonzero(as_tuple=True)[0]
        member[rows, ids.long()[rows]] = True
        return cls(member, tuple(names), attribute)

    @classmethod
    def cells(
        cls,
        y: Tensor,
        attribute: Tensor,
        *,
        labels: Sequence[str],
        attributes: Sequence[str],
        columns: Sequence[str] = ("label", "attribute"),
        values: Sequence[tuple[str, ...]] | None = None,
        by_column: Sequence[tuple[Tensor, Sequence[str]]] = (),
    ) -> Self:
        """Label×attribute cells in the order ``len(attributes) * y + attribute``.

        Where an attribute is itself a combination of columns, ``columns`` names the label and these, and ``values`` has their
        values for each attribute. ``by_column`` has the value of every example in each of them, as a code (-1 where it is blank)
        and the names of the codes: an example with a blank in one column counts in the margins of the others.

        >>> Groups.cells(torch.tensor([1]), torch.tensor([0]), labels=["no", "yes"], attributes=["a", "b"]).ids
        tensor([2])
        """
        if len(attribute) and not -1 <= int(attribute.min()) <= int(attribute.max()) < len(attributes):
            raise ValueError(
                f"Attributes must lie in 0..{len(attributes) - 1}, got {int(attribute.min())}..{int(attribute.max())}."
            )
        per_attribute = [(name,) for name in attributes] if values is None else list(values)
        parts = tuple((label, *value) for label in labels for value in per_attribute)
        cell = torch.where(attribute >= 0, y.long() * len(attributes) + attribute.long(), -1)
        made = cls.from_ids(cell, list(map(group_name, parts)), attribute=attribute.long())
        combined = [tuple(dict.fromkeys(value[place] for value in per_attribute)) for place in range(len(columns) - 1)]
        by_name = [tuple(names) for _, names in by_column] or combined
        made = replace(made, columns=tuple(columns), parts=parts, column_values=(tuple(labels), *by_name))
        codes = torch.stack([y.long(), *(codes.long() for codes, _ in by_column)], dim=1)
        partly_blank = (attribute < 0) & (codes[:, 1:] >= 0).any(dim=1)
        return replace(made, column_codes=codes) if bool(partly_blank.any()) else made

    def rows(self, index: Tensor) -> Self:
        """The groups of the examples ``index``."""
        return self._with(lambda of_examples: of_examples[index])

    def to(self, device: torch.device) -> Self:
        return self._with(lambda of_examples: of_examples.to(device))

    def known_for(self, rows: Tensor) -> Self:
        """These groups, known only for the examples ``rows``, bool [n]."""

        def blanked(of_examples: Tensor) -> Tensor:
            blank = torch.full_like(of_examples, False if of_examples.dtype == torch.bool else -1)
            blank[rows] = of_examples[rows]
            return blank

        return self._with(blanked)

    def _with(self, change: Callable[[Tensor], Tensor]) -> Self:
        """These groups, with ``change`` applied to everything that has a row for every example."""
        attribute = None if self.attribute is None else change(self.attribute)
        codes = None if self.column_codes is None else change(self.column_codes)
        return replace(self, member=change(self.member), attribute=attribute, column_codes=codes)

    @cached_property
    def pairs(self) -> tuple[Tensor, Tensor]:
        """Every membership as a row and a group, int64 [memberships] each."""
        rows, groups = self.member.nonzero(as_tuple=True)
        return rows, groups

    @cached_property
    def margins(self) -> tuple[Margin, ...]:
        """Every label with every value of one attribute column, column by column; none where there is only one column."""
        return margins_of(self.columns, self.column_values)

    @cached_property
    def titles(self) -> dict[str, str]:
        """What groups are called where people read them, by name: values that say nothing alone have the name of their column."""
        bare = bare_columns(self.columns, self.column_values)
        parts = [group_title(dict(zip(self.columns, part, strict=True)), bare) for part in self.parts]
        return dict(zip(self.names, parts or self.names, strict=True))

    @cached_property
    def in_margins(self) -> Tensor:
        """Membership in the margins, bool [n, margins]."""
        within = []
        for margin in self.margins:
            codes = self.by_column
            place = self.columns.index(margin.column, 1)
            label, value = (
                self.column_values[at].index(part) for at, part in zip((0, place), margin.parts, strict=True)
            )
            within.append((codes[:, 0] == label) & (codes[:, place] == value))
        return torch.stack(within, dim=1) if within else self.member[:, :0]

    @cached_property
    def part_codes(self) -> Tensor:
        """Which of ``column_values`` each group has in each of ``columns``, int64 [groups, columns]."""
        places = [{value: code for code, value in enumerate(values)} for values in self.column_values]
        codes = [[of[value] for of, value in zip(places, part, strict=True)] for part in self.parts]
        shape = (len(self.names), len(self.columns))
        return torch.tensor(codes, dtype=torch.int64, device=self.member.device).reshape(shape)

    @cached_property
    def by_column(self) -> Tensor:
        """Which of ``column_values`` each example has in each of ``columns``, int64 [n, columns], -1 where it is blank."""
        if self.column_codes is not None:
            return self.column_codes
        blank = torch.full((1, len(self.columns)), -1, device=self.member.device)
        return torch.cat([self.part_codes, blank])[self.codes]

    @cached_property
    def possible(self) -> Tensor:
        """Which groups agree with the columns that are known of each example, bool [n, groups]; all where none is."""
        agree = torch.ones_like(self.member)
        for column, of_groups in zip(self.by_column.T, self.part_codes.T, strict=True):
            agree &= (column[:, None] < 0) | (column[:, None] == of_groups)
        return agree

    @cached_property
    def unit_pairs(self) -> tuple[Tensor, Tensor]:
        """Every membership in a group or margin as a row and a number, int64 each; margins are numbered after the groups."""
        rows, margins = self.in_margins.nonzero(as_tuple=True)
        return torch.cat([self.pairs[0], rows]), torch.cat([self.pairs[1], margins + len(self.names)])

    @cached_property
    def sizes(self) -> Tensor:
        return self.member.sum(dim=0)

    @cached_property
    def disjoint(self) -> bool:
        """Whether every example is in exactly one group."""
        return bool((self.member.sum(dim=1) == 1).all())

    @cached_property
    def codes(self) -> Tensor:
        """The group of every example, int64 [n], -1 where it is not known; groups must not overlap."""
        if not self.names:
            return torch.full((len(self.member),), -1, device=self.member.device)
        known = self.member.any(dim=1)
        return torch.where(known, self.member.view(torch.uint8).argmax(dim=1), -1)

    @cached_property
    def overlap(self) -> bool:
        """Whether some example is in several groups."""
        return bool((self.member.sum(dim=1) > 1).any())

    @cached_property
    def ids(self) -> Tensor:
        """The one group of every example, int64 [n]; raises where groups overlap or leave examples out."""
        if not self.names:
            raise UserError(
                "This needs groups, but the task has none; for a table, name their columns with ",
                Setting("groups"),
                ".",
            )
        if not self.disjoint and not self.overlap:
            blank = int((~self.member.any(dim=1)).sum())
            raise UserError(
                f"The group of every example must be known here, but it is not for {blank:,} of {len(self.member):,}; fill the "
                "blanks, or take a method that needs those of a few rows (ssa, pg_dro) or none (umix methods)."
            )
        if not self.disjoint:
            raise UserError(
                f"Every example must be in exactly one of the groups {', '.join(self.names)}, but they overlap or leave "
                "some out; declare disjoint training groups for this task."
            )
        return self.member.view(torch.uint8).argmax(dim=1)
