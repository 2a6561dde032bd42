"""The rows of a comparison: ERM as everybody knows it, by argmax, and beside it the same runs with a chosen threshold."""

from collections.abc import Mapping, Sequence

from umix.bench.runs.record import RunRecord
from umix.core.selection import Decide
from umix.reports.arrange import Arranged

#: The method whose plain row is always decided by argmax.
PLAIN = "erm"
#: What is added to its label in the row with the decision that validation chooses.
THRESHOLD = " + threshold"


def decided_rows(
    runs: Mapping[str, Mapping[str, Sequence[RunRecord]]], *, select: str | None = None, decide: Decide | None = None
) -> Arranged:
    """``runs`` as a comparison shows them: ``erm`` by argmax and ``erm + threshold``, the others as ``decide`` says.

    Without ``decide`` every run is decided as it was told. Runs that are decided by argmax anyway have no second row.
    """
    rows: Arranged = {}
    for task, methods in runs.items():
        here = rows.setdefault(task, {})
        for label, records in methods.items():
            told = [record.deciding(decide) for record in records]
            if any(_is_plain_with_decisions(record, select) for record in told):
                here[label] = [record.deciding("argmax") for record in told]
                label += THRESHOLD
            here[label] = told
    return rows


def plain_row(record: RunRecord) -> RunRecord:
    """``record`` as its own row of a comparison shows it."""
    return record.deciding("argmax") if record.method == PLAIN else record


def _is_plain_with_decisions(record: RunRecord, select: str | None) -> bool:
    if record.method != PLAIN or record.decide == "argmax" or not (select is None or record.has(select)):
        return False
    return record.compares_decisions(select)
