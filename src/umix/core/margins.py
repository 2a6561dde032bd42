"""Margins: the examples of a label and a value of one attribute column, whatever the other columns say."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from umix.core.words import group_name


@final
@dataclass(frozen=True)
class Margin:
    """The examples that share ``parts``, a label and a value of one attribute ``column``."""

    column: str
    parts: tuple[str, str]

    @property
    def name(self) -> str:
        return group_name(self.parts)


def margins_of(columns: Sequence[str], values: Sequence[Sequence[str]]) -> tuple[Margin, ...]:
    """The margins of a label and two or more attribute ``columns``, which have these ``values``; none of one attribute.

    >>> margins_of(["y", "sex", "race"], [["no", "yes"], ["f", "m"], ["a"]])[1]
    Margin(column='sex', parts=('no', 'm'))
    """
    if len(columns) <= 2:
        return ()
    by_column = list(zip(columns, values, strict=True))
    return tuple(
        Margin(column, (label, value)) for column, own in by_column[1:] for label in values[0] for value in own
    )
