"""Grids drawn for the terminal and as Markdown; comparisons as CSV and JSON, with rates in [0, 1]."""

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group
from rich.text import Text

from umix.core.statistics import Paired
from umix.reports.comparison import RATES, Comparison, MethodRates
from umix.reports.published import published
from umix.reports.tables.column_widths import Columns
from umix.reports.tables.text_table import Entry, TextTable


def terminal(table: TextTable) -> Group:
    """The table with its notes below."""
    notes = [Text(note, style="yellow" if note.startswith("Warning") else "dim") for note in table.notes]
    return Group(Columns(table), *notes, "")


def markdown(tables: Sequence[TextTable]) -> str:
    """The tables as Markdown tables under their titles."""
    return "\n".join(_markdown(table) for table in tables)


def _markdown(table: TextTable) -> str:
    rule = ["---" if k < table.names else "---:" for k in range(len(table.header))]
    lines = [
        [_escaped(name) for name in table.full_header],
        rule,
        *([_in_markdown(entry) for entry in row] for row in table.rows),
    ]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"**{_escaped(table.title)}**\n\n{text}\n\n" + "".join(f"{_escaped(note)}\n" for note in table.notes)


def _in_markdown(entry: Entry) -> str:
    return f"**{_escaped(entry.text)}**" if entry.best else _escaped(entry.text)


def _escaped(text: str) -> str:
    for sign in ("\\", "|", "*", "_", "<", "`"):
        text = text.replace(sign, f"\\{sign}")
    return text.replace("\n", " ")


def as_csv(comparisons: Sequence[Comparison], *, with_published: bool = False) -> str:
    """One line per rule, task and method, every number in a column of its own; empty where there is none."""
    rows = [row for comparison in comparisons for row in flat(comparison, with_published=with_published)]
    columns = list(dict.fromkeys(column for row in rows for column in row))
    content = io.StringIO()
    writer = csv.DictWriter(content, columns, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows({column: "" if value is None else value for column, value in row.items()} for row in rows)
    return content.getvalue()


def as_json(comparisons: Sequence[Comparison], *, with_published: bool = False) -> str:
    """The rows of the CSV as objects, and the rates of the groups."""
    rows: list[dict[str, Any]] = []
    for comparison in comparisons:
        cells = [cell for methods in comparison.cells.values() for cell in methods.values()]
        for row, cell in zip(flat(comparison, with_published=with_published), cells, strict=True):
            groups = {name: {"mean": _number(s.mean), "std": _number(s.std)} for name, s in cell.groups.items()}
            rows.append(row | {"seeds": list(cell.seeds), "doubts": list(cell.doubts), "groups": groups})
    notes = list(dict.fromkeys(note for comparison in comparisons for note in comparison.notes))
    content = {"baseline": comparisons[0].baseline, "notes": notes, "rows": rows}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def flat(comparison: Comparison, *, with_published: bool = False) -> list[dict[str, Any]]:
    """One row per task and method: names and numbers."""
    return [
        _flat(task, label, cell, with_published=with_published)
        for task, cells in comparison.cells.items()
        for label, cell in cells.items()
    ]


def _flat(task: str, label: str, cell: MethodRates, *, with_published: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"task": task, "method": label, "learner": cell.learner}
    row |= {"select": cell.select, "decide": cell.decide}
    row |= {"seeds": " ".join(map(str, cell.seeds)), "n_seeds": len(cell.seeds), "n_fits": cell.fits}
    for rate in RATES:
        row |= {f"{rate}_mean": _number(cell.rates[rate].mean), f"{rate}_std": _number(cell.rates[rate].std)}
    row |= {"worst_low": _number(cell.interval.low), "worst_high": _number(cell.interval.high)}
    row |= _gains(cell.gains)
    if with_published:
        for rate, spread in published(task, cell.method).items():
            row |= {f"published_{rate}_mean": spread.mean, f"published_{rate}_std": spread.std}
    return row | {"doubts": "; ".join(cell.doubts)}


def _gains(gains: Mapping[str, Paired]) -> dict[str, float | int | None]:
    row: dict[str, float | int | None] = {}
    for rate, gain in gains.items():
        row |= {f"{rate}_gain_seeds": gain.seeds}
        row |= {f"{rate}_gain_mean": _number(gain.spread.mean), f"{rate}_gain_std": _number(gain.spread.std)}
        row |= {f"{rate}_gain_low": _number(gain.interval.low), f"{rate}_gain_high": _number(gain.interval.high)}
        row |= {f"{rate}_gain_p_flip": _number(gain.p_flip), f"{rate}_gain_p_sign": _number(gain.p_sign)}
    return row


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 6)
