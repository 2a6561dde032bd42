"""How wide the columns of a table are in a terminal: numbers stay whole, words and names give way."""

import re
from collections.abc import Iterator
from typing import final

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from umix.reports.tables.text_table import TextTable

_NUMBER = re.compile(r"[\[<]?[+-]?\d")  # how a cell with numbers begins
_SHORTEST_NAME = 8
_GAP = 2


@final
class Columns:
    """A table for rich that is as wide as the terminal allows."""

    def __init__(self, table: TextTable) -> None:
        self._table = table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        table = self._table
        widths, gap = fitting(table, options.max_width)
        drawn = Table(
            title=escape(table.title),
            title_justify="left",
            box=box.SIMPLE_HEAD,
            show_edge=False,
            pad_edge=False,
            padding=(0, gap - 1, 0, 0),
        )
        for k, (name, width) in enumerate(zip(table.full_header, widths, strict=True)):
            # Where even that is too narrow a cell goes on in the next line: nothing is cut off.
            drawn.add_column(escape(name), justify="left" if k < table.names else "right", overflow="fold", width=width)
        for row in table.rows:
            drawn.add_row(*(Text(entry.text, style="bold" if entry.best else "") for entry in row))
        yield drawn


def fitting(table: TextTable, room: int) -> tuple[list[int | None], int]:
    """The width of every column and the gap between them; None where numbers have to be broken.

    Headers, words and names with spaces are broken at spaces first, then columns move together, then names are broken anywhere.
    """
    columns = [[name, *(row[k].text for row in table.rows)] for k, name in enumerate(table.full_header)]
    natural = [max(map(cell_len, texts)) for texts in columns]
    least = [
        max(_word(text) if k < table.names else _unbroken(text) for text in texts) for k, texts in enumerate(columns)
    ]
    short = [min(width, _SHORTEST_NAME) if k < table.names else width for k, width in enumerate(least)]
    for widths, gap in ((least, _GAP), (least, 1), (short, 1)):
        left = room - sum(widths) - gap * (len(widths) - 1)
        if left >= 0:
            return list(_grown(widths, natural, left)), gap
    return [None] * len(columns), 1


def _unbroken(text: str) -> int:
    """The longest part that must stay in one line: a number with all that belongs to it, or a word."""
    return cell_len(text) if _NUMBER.match(text) else _word(text)


def _word(text: str) -> int:
    return max(map(cell_len, text.split()), default=0)


def _grown(widths: list[int], natural: list[int], left: int) -> Iterator[int]:
    """The widths with what is left of the room, from the first column on."""
    for width, most in zip(widths, natural, strict=True):
        more = min(left, most - width)
        left -= more
        yield width + more
