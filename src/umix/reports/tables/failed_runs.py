"""Failed runs in a table of rates: they are counted beside the seeds that a row is about, never left unsaid."""

from collections.abc import Mapping
from dataclasses import replace

from umix.reports.tables.text_table import Entry, TextTable


def with_failed(table: TextTable, failed: Mapping[str, int]) -> TextTable:
    """``table`` of methods and seeds with the number of failed runs of each method; a method that only failed has its row too.

    >>> table = TextTable("moons", ["method", "seeds", "worst"], [[Entry("erm"), Entry("2"), Entry("50.0")]])
    >>> [[entry.text for entry in row] for row in with_failed(table, {"erm": 1, "jtt": 3}).rows]
    [['erm', '2, 1 failed', '50.0'], ['jtt', '0, 3 failed', 'failed']]
    """
    rows = [
        [row[0], Entry(f"{row[1].text}, {failed[row[0].text]} failed"), *row[2:]] if row[0].text in failed else row
        for row in table.rows
    ]
    shown = {row[0].text for row in table.rows}
    blank = [Entry("failed")] * (len(table.header) - 2)
    rows += [
        [Entry(label), Entry(f"0, {count} failed"), *blank] for label, count in failed.items() if label not in shown
    ]
    return replace(table, rows=rows)
