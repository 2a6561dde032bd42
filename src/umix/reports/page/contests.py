"""What a run tried before it was trained, for the page: the figure of its candidates and the best one of every family."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from umix.bench.runs.record import RunRecord
from umix.reports.charts.contest import contest_chart, contest_rows, frontier_rows, has_contest, kind_of
from umix.reports.charts.figure import Figure
from umix.reports.tables.run_table import decision_words


@final
@dataclass(frozen=True, eq=False)
class ContestView:
    """The contest of one run of the method ``label``: what it says, its figure, and ``best``, the best row of every family."""

    label: str
    record: RunRecord
    kind: str
    sentences: Sequence[str]
    figure: Figure
    best: Sequence[Mapping[str, Any]]


def contest_views(runs: Mapping[str, Sequence[RunRecord]]) -> list[ContestView]:
    """The contests of the first run of every method that held one."""
    return [_view(label, records[0]) for label, records in runs.items() if records and _is_drawn(records[0])]


def _is_drawn(record: RunRecord) -> bool:
    return has_contest(record) and bool(contest_rows(record))


def _view(label: str, record: RunRecord) -> ContestView:
    rows, kind = contest_rows(record), kind_of(record)
    best: dict[str, Mapping[str, Any]] = {}
    for row in rows:  # the best first
        best.setdefault(row["family"], row)
    return ContestView(
        label=label,
        record=record,
        kind=kind,
        sentences=decision_words(record).split("\n"),
        figure=contest_chart(rows, frontier_rows(record), kind=kind, label=label),
        best=list(best.values()),
    )
