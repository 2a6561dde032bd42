"""A table as text: what its cells say, which are the best, what must be said below; drawn by rich, as Markdown and as LaTeX."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

from rich import box
from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from umix.core.statistics import Interval, Spread

_LATEX_SIGNS = {sign: f"\\{sign}" for sign in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "–": "--",
}


@final
@dataclass(frozen=True)
class Entry:
    """The text of a cell; the best of its kind is bold."""

    text: str
    best: bool = False


@final
@dataclass(frozen=True)
class TextTable:
    """Column names, rows of entries of which the first says what the row is about, and notes."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Entry]]
    notes: Sequence[str] = field(default=())


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
    means = [mean for mean in shown if mean is not None]
    return [len(means) > 1 and mean == max(means) for mean in shown]


def marked(spreads: Sequence[Spread]) -> list[Entry]:
    """Entries of these spreads, the highest mean bold."""
    return [Entry(percent(spread), best=is_best) for spread, is_best in zip(spreads, best(spreads), strict=True)]


def terminal(table: TextTable) -> Group:
    """The table with its notes below."""
    drawn = Table(
        title=escape(table.title),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for place, name in enumerate(table.header):
        drawn.add_column(escape(name), justify="right" if place else "left", overflow="fold")
    for row in table.rows:
        drawn.add_row(*(Text(entry.text, style="bold" if entry.best else "") for entry in row))
    notes = [Text(note, style="yellow" if note.startswith("Warning") else "dim") for note in table.notes]
    return Group(drawn, *notes, "")


def markdown(tables: Sequence[TextTable]) -> str:
    """The tables as Markdown tables under their titles."""
    return "\n".join(map(_markdown, tables))


def _markdown(table: TextTable) -> str:
    def cell(entry: Entry) -> str:
        text = re.sub(r"([\\|*_<`])", r"\\\1", entry.text).replace("\n", " ")
        return f"**{text}**" if entry.best else text

    lines = [[cell(Entry(name)) for name in table.header], ["---", *["---:"] * (len(table.header) - 1)]]
    lines += [[cell(entry) for entry in row] for row in table.rows]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    notes = "".join(f"{cell(Entry(note))}\n" for note in table.notes)
    return f"{cell(Entry(table.title, best=True))}\n\n{text}\n\n{notes}"


def latex(table: TextTable) -> str:
    """The table as a ``tabular`` for booktabs, its title and notes as comments."""

    def cell(entry: Entry) -> str:
        text = "".join(_LATEX_SIGNS.get(sign, sign) for sign in entry.text)
        return rf"\textbf{{{text}}}" if entry.best else text

    comments = [f"% {' '.join(note.split())}" for note in [table.title, *table.notes]]
    head, *rows = (" & ".join(map(cell, row)) + r" \\" for row in ([Entry(name) for name in table.header], *table.rows))
    begin = rf"\begin{{tabular}}{{l{'c' * (len(table.header) - 1)}}}"
    lines = [*comments, begin, r"\toprule", head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines) + "\n"
