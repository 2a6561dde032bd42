"""The table of a study has one row per method, the best worst group first."""

from collections.abc import Callable

import pytest

from umix.bench.runs.record import RunRecord
from umix.reports.page.method_table import method_rows

Make = Callable[..., RunRecord]


def test_methods_are_sorted_by_worst_group_and_say_which_labels_they_use(record: Make) -> None:
    runs = {
        "erm": [record(seed, [9, 3], group_use="none") for seed in range(3)],
        "umix": [record(seed, [8, 6], "umix", group_use="none") for seed in range(3)],
        "group_dro": [record(seed, [8, 7], "group_dro", group_use="training") for seed in range(3)],
    }
    rows = method_rows("toy", runs, select=None, baseline="erm")
    assert [(row.method, row.uses) for row in rows] == [
        ("group_dro", "train"),
        ("umix", "choose"),
        ("erm", "choose"),
    ]
    assert rows[1].worst.mean == pytest.approx(0.6)
    assert rows[1].worst_group == "b"
    assert rows[1].gain.mean == pytest.approx(0.3)
    assert rows[1].p == pytest.approx(0.25)
    assert rows[2].gain is None
    assert rows[2].cells["worst, difference"] is None


def test_by_the_average_rule_no_group_label_is_used(record: Make) -> None:
    rows = method_rows("toy", {"erm": [record(0, [9, 3], group_use="none")]}, select="average", baseline="erm")
    assert rows[0].uses == "none"
