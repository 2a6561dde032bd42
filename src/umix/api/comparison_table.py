"""A comparison of methods as a table: printed, in a notebook, as a frame, as text for papers."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, final

from rich.console import Group

from umix.bench.runs.record import RunRecord
from umix.core.selection import Decide
from umix.reports.comparison import Comparison, compare
from umix.reports.decided_rows import decided_rows
from umix.reports.tables.comparison_tables import comparison_tables, gains_table, rates_table
from umix.reports.tables.failed_runs import with_failed
from umix.reports.tables.formats import flat, markdown, terminal
from umix.reports.tables.latex import latex
from umix.terminal import as_html, as_text

if TYPE_CHECKING:
    import polars

    from umix.reports.tables.text_table import TextTable


@final
class ComparisonTable:
    """Rates of methods over seeds, and paired differences to a baseline."""

    def __init__(self, comparison: Comparison, tables: "Sequence[TextTable]") -> None:
        self.comparison = comparison
        self.tables = list(tables)

    @classmethod
    def of(
        cls,
        runs: Mapping[str, Mapping[str, Sequence[RunRecord]]],
        *,
        select: str | None = None,
        decide: Decide | None = None,
        baseline: str | None = None,
        groups: bool = False,
        failed: Mapping[str, Mapping[str, int]] | None = None,
    ) -> "ComparisonTable":
        """The table of records by task and method label; ``failed`` counts runs without a record in the same way.

        ERM has a row by argmax and one, ``erm + threshold``, with the decision chosen on validation, as the others have.
        """
        comparison = compare(decided_rows(runs, select=select, decide=decide), select=select, baseline=baseline)
        if groups:
            return cls(comparison, comparison_tables(comparison, groups=True))
        tables = []
        for task, cells in comparison.cells.items():
            tables.append(with_failed(rates_table(comparison, task), (failed or {}).get(task, Counter())))
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
