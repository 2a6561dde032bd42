"""The headline says what the numbers say, and no more than they allow."""

from collections.abc import Callable

import pytest

from umix.bench.runs.record import RunRecord
from umix.reports.comparison import compare
from umix.reports.page.headline import headline
from umix.reports.tables.text_table import percents

Make = Callable[..., RunRecord]


def scaled(record: Make, seed: int, rates: list[int], method: str, times: int = 10) -> RunRecord:
    """A run with so many hits of ``10 * times`` per group."""
    counts = {
        "hits": [[rate * times for rate in rates]],
        "sizes": [10 * times] * 2,
        "class_hits": [[sum(rates) * times]],
        "class_sizes": [20 * times],
    }
    return record(seed, rates, method, split_counts={"val": counts, "test": counts})


def test_the_gain_and_its_price_are_told_in_points(record: Make) -> None:
    runs = {
        "erm": [scaled(record, seed, [10, 5], "erm") for seed in range(5)],
        "umix": [scaled(record, seed, [8, 6], "umix") for seed in range(5)],
    }
    said = headline("toy", runs, select=None, baseline="erm")
    assert said.method == "umix"
    assert said.worst_name == "b"
    assert "10.0 points more than erm on the worst group, and the average is 5.0 points lower." in said.sentences[1]
    assert said.evidence == "strong"
    assert said.reasons == ()


@pytest.mark.parametrize(
    ("seeds", "times", "evidence", "reason"),
    [
        (1, 10, "weak", "fewer than 3 seeds"),
        (3, 1, "weak", "the worst group has 10 test examples, fewer than 30"),
        (3, 10, "moderate", "with 3 seeds no test can reach p < 0.25"),
    ],
)
def test_the_evidence_is_as_strong_as_seeds_and_sizes_allow(
    record: Make, seeds: int, times: int, evidence: str, reason: str
) -> None:
    runs = {
        "erm": [scaled(record, seed, [10, 5], "erm", times) for seed in range(seeds)],
        "umix": [scaled(record, seed, [8, 6], "umix", times) for seed in range(seeds)],
    }
    said = headline("toy", runs, select=None, baseline="erm")
    assert said.evidence == evidence
    assert reason in said.reasons


def test_a_difference_that_seeds_disagree_on_is_weak_evidence(record: Make) -> None:
    runs = {
        "erm": [scaled(record, seed, [10, 5], "erm") for seed in range(6)],
        "umix": [scaled(record, seed, [10, 4 if seed % 2 else 6], "umix") for seed in range(6)],
    }
    said = headline("toy", runs, select=None, baseline="erm")
    assert said.evidence == "weak"
    interval = percents(compare({"toy": runs}).cells["toy"]["umix"].gains["worst"].interval, sign=True)
    assert said.reasons == (
        f"the difference to erm is not clear of zero: its interval over seeds is {interval} points",
    )


def test_validation_and_not_test_chooses_the_method_that_is_shown(record: Make) -> None:
    good = {"hits": [[10, 9]], "sizes": [10, 10], "class_hits": [[19]], "class_sizes": [20]}
    bad = {"hits": [[10, 1]], "sizes": [10, 10], "class_hits": [[11]], "class_sizes": [20]}
    runs = {
        "erm": [record(0, [5, 5])],
        "a": [record(0, [5, 5], "a", split_counts={"val": good, "test": bad})],
        "b": [record(0, [5, 5], "b", split_counts={"val": bad, "test": good})],
    }
    assert headline("toy", runs, select=None, baseline="erm").method == "a"


def test_a_method_alone_is_compared_with_nothing(record: Make) -> None:
    said = headline("toy", {"umix": [record(0, [9, 5], "umix")]}, select=None, baseline=None)
    assert "What that is worth is not known" in said.sentences[1]
    assert said.gain is None
    assert said.evidence == "weak"
