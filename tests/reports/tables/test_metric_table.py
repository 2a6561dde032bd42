"""The table of one metric: what it prints, and nothing beyond that is computed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from umix.bench.runs.record import RunRecord
from umix.reports.tables.metric_table import metric_tables


def test_intervals_that_the_table_does_not_print_are_not_drawn(
    study: Callable[..., list[RunRecord]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = {"toy": {"erm": [record for record in study(tmp_path) if record.method == "erm"]}}
    expected = metric_tables(runs, "brier")

    def refuse(*_: object) -> None:
        raise AssertionError("a bootstrap interval was drawn")

    monkeypatch.setattr("umix.reports.metrics.stream", refuse)
    assert metric_tables(runs, "brier") == expected
