"""Margins: groups united by one attribute column alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from umix.core.words import group_name


@final
@dataclass(frozen=True)
class Margin:
    """The groups (their numbers) that share ``parts``, a label and a value of one attribute ``column``."""

    column: str
    parts: tuple[str, str]
    groups: tuple[int, ...]

    @property
    def name(self) -> str:
        return group_name(self.parts)


def margins_of(columns: Sequence[str], parts: Sequence[Sequence[str]]) -> tuple[Margin, ...]:
    """The margins of groups that are combinations of a label and two or more attribute columns.

    >>> margins_of(["y", "sex", "race"], [("no", "f", "a"), ("no", "f", "b"), ("no", "m", "a")])[0]
    Margin(column='sex', parts=('no', 'f'), groups=(0, 1))
    """
    found: list[Margin] = []
    for place, column in list(enumerate(columns))[1:] if len(columns) > 2 else []:
        united: dict[tuple[str, str], list[int]] = {}
        for group, part in enumerate(parts):
            united.setdefault((part[0], part[place]), []).append(group)
        found += [Margin(column, parts, tuple(groups)) for parts, groups in united.items()]
    return tuple(found)
