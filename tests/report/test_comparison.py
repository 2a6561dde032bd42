"""Tables from records, against numbers computed by hand."""

import io
import math
import subprocess
import sys

import pytest
from rich.console import Console

from umix.bench.record import RunRecord
from umix.report.comparison import Spread, compare
from umix.report.tables import comparison_table, run_table


def record(seed: int, hits: list[int], method: str = "erm") -> RunRecord:
    """A run of one epoch with these test hits out of 10 per group; validation likes it."""
    counts = {"hits": [hits], "sizes": [10] * len(hits), "class_hits": [[sum(hits)]], "class_sizes": [10 * len(hits)]}
    return RunRecord(
        task="toy",
        method=method,
        seed=seed,
        settings={},
        plan={},
        key="k",
        fingerprint="f",
        groups=["a", "b"],
        classes=["only"],
        input_shape=[2],
        train_sizes=[90, 10],
        split_counts={"val": counts, "test": counts},
        stages={},
        warnings=[],
        versions={},
    )


def test_rows_hold_means_deviations_and_paired_differences() -> None:
    runs = {"base": [record(0, [9, 5]), record(1, [9, 7])], "new": [record(0, [8, 8]), record(1, [8, 9])]}
    base, new = compare(runs)
    assert base.rates["worst"].mean == pytest.approx(0.6)
    assert base.rates["worst"].std == pytest.approx(math.sqrt(0.02))
    assert base.rates["adjusted"].mean == pytest.approx(0.9 * 0.9 + 0.1 * 0.6)
    assert base.rates["average"].mean == pytest.approx(0.75)
    assert base.worst_gain is None
    assert new.worst_gain.mean == pytest.approx(((0.8 - 0.5) + (0.8 - 0.7)) / 2)
    assert new.groups["b"].mean == pytest.approx(0.85)


def test_differences_are_paired_over_common_seeds_only() -> None:
    runs = {"base": [record(0, [9, 5])], "new": [record(0, [8, 6]), record(1, [8, 1])]}
    assert compare(runs)[1].worst_gain.mean == pytest.approx(0.1)


def test_a_single_seed_has_no_deviation() -> None:
    assert math.isnan(Spread.of([0.5]).std)


def test_the_table_shows_percent_and_marks_the_best() -> None:
    runs = {"base": [record(0, [9, 5]), record(1, [9, 7])], "new": [record(0, [8, 8]), record(1, [8, 9])]}
    console = Console(file=io.StringIO(), width=100)
    console.print(comparison_table(compare(runs), title="toy", test_sizes={"a": 10, "b": 10}))
    text = console.file.getvalue()
    for expected in (
        "adjusted average",
        "60.0 ± 14.1",
        "80.0 ± 0.0",
        "worst group vs base",
        "+20.0 ± 14.1",
        "mean ± standard",
    ):
        assert expected in text


def test_the_table_of_one_run_shows_sizes() -> None:
    console = Console(file=io.StringIO(), width=100)
    one = record(0, [9, 5])
    console.print(run_table(one, one.summary()))
    text = console.file.getvalue()
    assert "90.0" in text
    assert "50.0" in text


def test_reports_do_not_import_torch() -> None:
    code = "import sys, umix.report.tables; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
