"""A comparison of methods as a table: printed, in a notebook, as a frame, as text for papers."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, final

from rich.console import Group

from umix.bench.runs.record import RunRecord
from umix.core.selection import Threshold
from umix.reports.arrange import threshold_rows
from umix.reports.comparison import Comparison, compare
from umix.reports.tables.comparison_tables import comparison_tables, flat, gains_table, rates_table
from umix.reports.tables.text_table import Entry, TextTable, latex, markdown, terminal
from umix.terminal import as_html, as_text

if TYPE_CHECKING:
    import polars


@final
class ComparisonTable:
    """Rates of methods over seeds, and paired differences to a baseline."""

    def __init__(self, comparison: Comparison, tables: Sequence[TextTable]) -> None:
        self.comparison = comparison
        self.tables = list(tables)

    @classmethod
    def of(
        cls,
        runs: Mapping[str, Mapping[str, Sequence[RunRecord]]],
        *,
        select: str | None = None,
        threshold: Threshold | None = None,
        baseline: str | None = None,
        groups: bool = False,
        failed: Mapping[str, Mapping[str, int]] | None = None,
    ) -> "ComparisonTable":
        """The table of records by task and method label; ``failed`` counts runs without a record in the same way.

        ERM has a row by argmax and one, ``erm + threshold``, with the threshold chosen on validation, as the others have.
        """
        comparison = compare(threshold_rows(runs, select=select, threshold=threshold), select=select, baseline=baseline)
        if groups:
            return cls(comparison, comparison_tables(comparison, groups=True))
        tables = []
        for task, cells in comparison.cells.items():
            tables.append(_with_failed(rates_table(comparison, task), (failed or {}).get(task, Counter())))
            if any(cell.gains for cell in cells.values()):
                tables.append(gains_table(comparison, task))
        return cls(comparison, tables)

    def renderable(self) -> Group:
        """The table for rich, which draws it in a terminal."""
        return Group(*map(terminal, self.tables))

    def frame(self) -> "polars.DataFrame":
        """One row per task and method with every number in a column of its own; rates lie in [0, 1]."""
        import polars

        return polars.DataFrame(flat(self.comparison))

    def markdown(self) -> str:
        return markdown(self.tables)

    def latex(self) -> str:
        return "\n".join(map(latex, self.tables))

    def __str__(self) -> str:
        return as_text(self.renderable())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return as_html(self.renderable())


def _with_failed(table: TextTable, failed: Mapping[str, int]) -> TextTable:
    """``table`` of methods and seeds with the number of failed runs of each method; a method that only failed has its row too.

    >>> table = TextTable("moons", ["method", "seeds", "worst"], [[Entry("erm"), Entry("2"), Entry("50.0")]])
    >>> [[entry.text for entry in row] for row in _with_failed(table, {"erm": 1, "jtt": 3}).rows]
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
