"""Comparisons as LaTeX in the paper's layout: methods as rows, per task average and worst group, the best bold (booktabs)."""

import math
from collections.abc import Mapping, Sequence

from umix.core.statistics import Spread
from umix.report.comparison import Comparison
from umix.report.grid import Entry, Grid, best
from umix.report.published import published

_ESCAPES = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}
_NONE = Spread(math.nan, math.nan)
_SHOWN = ("average", "worst")


def latex(comparison: Comparison, *, with_published: bool = False) -> str:
    """A ``tabular``; needs the packages booktabs and amsmath. Published numbers stand beside ours in columns of their own."""
    tasks, methods = list(comparison.cells), comparison.methods
    width = 2 * len(_SHOWN) if with_published else len(_SHOWN)
    columns = [
        column for task in tasks for column in _columns(comparison, task, methods, with_published=with_published)
    ]
    spans = [rf"\multicolumn{{{width}}}{{c}}{{{escaped(task)}}}" for task in tasks]
    rules = [rf"\cmidrule(lr){{{2 + k * width}-{1 + (k + 1) * width}}}" for k in range(len(tasks))]
    names = [*_SHOWN, *(f"paper's {rate}" for rate in _SHOWN)][:width] * len(tasks)
    lines = [
        rf"\begin{{tabular}}{{l{'c' * (width * len(tasks))}}}",
        r"\toprule",
        f" & {' & '.join(spans)} \\\\",
        " ".join(rules),
        f"method & {' & '.join(names)} \\\\",
        r"\midrule",
        *(f"{escaped(label)} & {' & '.join(column[k] for column in columns)} \\\\" for k, label in enumerate(methods)),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def grid_latex(grid: Grid) -> str:
    """Any grid as a ``tabular``, its notes as comments."""
    lines = [
        *(f"% {note}" for note in [grid.title, *grid.notes]),
        rf"\begin{{tabular}}{{{'l' * grid.names}{'c' * (len(grid.header) - grid.names)}}}",
        r"\toprule",
        f"{' & '.join(map(escaped, grid.header))} \\\\",
        r"\midrule",
        *(f"{' & '.join(map(_entry, row))} \\\\" for row in grid.rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _entry(entry: Entry) -> str:
    text = escaped(entry.text).replace("±", r"$\pm$").replace("–", "--")
    return rf"\textbf{{{text}}}" if entry.best else text


def _columns(comparison: Comparison, task: str, methods: Sequence[str], *, with_published: bool) -> list[list[str]]:
    cells = comparison.cells[task]
    ours: list[Mapping[str, Spread]] = [cells[label].rates if label in cells else {} for label in methods]
    found = [[rates.get(rate, _NONE) for rates in ours] for rate in _SHOWN]
    if with_published:
        theirs = [published(task, cells[label].method) if label in cells else {} for label in methods]
        found += [[rates.get(rate, _NONE) for rates in theirs] for rate in _SHOWN]
    return [[_number(s, bold=bold) for s, bold in zip(column, best(column), strict=True)] for column in found]


def _number(spread: Spread, *, bold: bool) -> str:
    if math.isnan(spread.mean):
        return "--"
    mean = f"{100 * spread.mean:.1f}"
    mean = rf"\mathbf{{{mean}}}" if bold else mean
    return f"${mean}$" if math.isnan(spread.std) else rf"${mean} \pm {100 * spread.std:.1f}$"


def escaped(text: str) -> str:
    r"""``text`` with every sign that means something to LaTeX written out.

    >>> escaped("group_dro & 50%")
    'group\\_dro \\& 50\\%'
    """
    return "".join(_ESCAPES.get(sign, sign) for sign in text)
