"""A table as text: what its cells say, which are the best, and what must be said below; the formats only draw it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

from umix.core.statistics import Interval, Spread


@final
@dataclass(frozen=True)
class Entry:
    """The text of a cell; the best of its kind is bold."""

    text: str
    best: bool = False


@final
@dataclass(frozen=True)
class TextTable:
    """Column names, rows of entries of which the first ``names`` say what the row is about, and notes.

    ``spans`` are the columns that belong together, after the names: what they share, and how many they are.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Entry]]
    notes: Sequence[str] = field(default=())
    names: int = 1
    spans: Sequence[tuple[str, int]] = field(default=())

    @property
    def full_header(self) -> list[str]:
        """The header in one line: ``worst: average`` for the column average of the span worst."""
        shared = [f"{name}: " for name, width in self.spans for _ in range(width)]
        rest = self.header[self.names :]
        return [*self.header[: self.names], *map(str.__add__, shared or [""] * len(rest), rest)]


def percent(spread: Spread, *, sign: bool = False) -> str:
    """``84.3 ± 1.2``, in percent.

    >>> percent(Spread(0.843, 0.012))
    '84.3 ± 1.2'
    >>> percent(Spread(float("nan"), float("nan")))
    '–'
    """
    if math.isnan(spread.mean):
        return "–"
    mean = f"{100 * spread.mean:+.1f}" if sign else f"{100 * spread.mean:.1f}"
    return mean if math.isnan(spread.std) else f"{mean} ± {100 * spread.std:.1f}"


def percents(interval: Interval, *, sign: bool = False) -> str:
    """``[81.9, 86.4]``, in percent.

    >>> percents(Interval(-0.01, 0.052), sign=True)
    '[-1.0, +5.2]'
    """
    if math.isnan(interval.low):
        return "–"
    form = "+.1f" if sign else ".1f"
    return f"[{100 * interval.low:{form}}, {100 * interval.high:{form}}]"


def p_value(p: float) -> str:
    """``0.25``, or ``<0.001``.

    >>> p_value(0.0001), p_value(0.25)
    ('<0.001', '0.250')
    """
    return "–" if math.isnan(p) else "<0.001" if p < 0.001 else f"{p:.3f}"


def best(spreads: Sequence[Spread]) -> list[bool]:
    """Which of these have the highest mean as it is printed: equal texts are equally good, and one alone is not the best."""
    shown = [None if math.isnan(spread.mean) else round(100 * spread.mean, 1) for spread in spreads]
    known = [mean for mean in shown if mean is not None]
    return [len(known) > 1 and mean == max(known) for mean in shown]


def marked(spreads: Sequence[Spread]) -> list[Entry]:
    """Entries of these spreads, the highest mean bold."""
    return [Entry(percent(spread), best=is_best) for spread, is_best in zip(spreads, best(spreads), strict=True)]
