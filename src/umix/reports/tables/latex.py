"""Grids as LaTeX in the paper's layout: a ``tabular`` whose best numbers are bold (booktabs, amsmath)."""

import re

from umix.reports.tables.text_table import Entry, TextTable

_ESCAPES = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}
_NUMBER = re.compile(r"([+-]?\d+\.\d)(?: ± (\d+\.\d))?")


def latex(table: TextTable) -> str:
    """The table as a ``tabular``, its title and notes as comments, columns that belong together under one name."""
    lines = [
        *(f"% {' '.join(note.split())}" for note in [table.title, *table.notes]),
        rf"\begin{{tabular}}{{{'l' * table.names}{'c' * (len(table.header) - table.names)}}}",
        r"\toprule",
        *_spans(table),
        f"{' & '.join(map(escaped, table.header))} \\\\",
        r"\midrule",
        *(f"{' & '.join(map(_entry, row))} \\\\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _spans(table: TextTable) -> list[str]:
    """A line of names over several columns, and one of rules below them; nothing where no columns belong together."""
    names, rules, start = [""] * table.names, [], table.names + 1
    for name, width in table.spans:
        names.append(rf"\multicolumn{{{width}}}{{c}}{{{escaped(name)}}}")
        rules.append(rf"\cmidrule(lr){{{start}-{start + width - 1}}}")
        start += width
    return [f"{' & '.join(names)} \\\\", " ".join(rules)] if rules else []


def _entry(entry: Entry) -> str:
    number = _NUMBER.fullmatch(entry.text)
    if number is None:
        text = escaped(entry.text).replace("±", r"$\pm$").replace("–", "--")
        return rf"\textbf{{{text}}}" if entry.best else text
    mean, std = number.groups()
    mean = rf"\mathbf{{{mean}}}" if entry.best else mean
    return f"${mean}$" if std is None else rf"${mean} \pm {std}$"


def escaped(text: str) -> str:
    r"""``text`` with every sign that means something to LaTeX written out.

    >>> escaped("group_dro & 50%")
    'group\\_dro \\& 50\\%'
    """
    return "".join(_ESCAPES.get(sign, sign) for sign in text)
