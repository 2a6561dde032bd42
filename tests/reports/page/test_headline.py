"""The headline says what the numbers say, and no more than they allow."""

from collections.abc import Callable

import pytest

from umix.bench.runs.record import RunRecord
from umix.reports.comparison import compare
from umix.reports.page.headline import headline
from umix.reports.sentences import collapse_words, judged_words
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
    said = headline(runs, select=None, baseline="erm")
    assert said.method == "umix"
    assert said.worst.name == "b"
    assert said.sentences == (
        "The chosen model (umix) is least accurate for b: 60.0 % of 100 test examples right (95 % interval 50.2 % to 69.1 %).",
        "An ordinary model (erm) gets 50.0 % of them right; umix gets 10.0 points more.",
        "On average umix gets 70.0 % right and erm 75.0 %.",
    )
    assert said.evidence == "strong"
    assert said.reasons == (
        "the worst group changes by [+10.0, +10.0] points over 5 seeds",
        "the worst group has 100 test examples",
    )


def test_the_worst_group_of_the_ordinary_model_is_compared_if_it_is_another(record: Make) -> None:
    runs = {
        "erm": [scaled(record, seed, [10, 5], "erm") for seed in range(3)],
        "umix": [scaled(record, seed, [6, 9], "umix") for seed in range(3)],
    }
    said = headline(runs, select=None, baseline="erm")
    assert said.sentences[0].startswith(
        "The chosen model (umix) is least accurate for a: 60.0 % of 100 test examples right"
    )
    assert said.sentences[1] == (
        "An ordinary model (erm) is least accurate for b: 50.0 % of 100 test examples right (95 % interval 40.4 % to 59.6 %); "
        "umix gets 90.0 % there, 40.0 points more."
    )
    assert said.gain.mean == pytest.approx(0.1)


def test_a_method_without_group_labels_is_recommended_and_the_best_with_labels_is_named_second(record: Make) -> None:
    runs = {
        "erm": [record(0, [9, 3])],
        "umix": [record(0, [8, 7], "umix", group_use="none")],
        "group_dro": [record(0, [9, 9], "group_dro", group_use="training")],
    }
    said = headline(runs, select=None, baseline="erm")
    assert said.method == "umix"
    second = "With group labels in training, group_dro is least accurate for a: 90.0 % of 10 test examples right"
    assert any(note.startswith(second) for note in said.notes)


def test_the_ordinary_model_with_a_threshold_is_no_choice_beside_one_that_trained_with_groups(record: Make) -> None:
    runs = {
        "erm": [record(0, [9, 3])],
        "erm + threshold": [record(0, [8, 5])],
        "best": [record(0, [8, 7], "best", group_use="training")],
    }
    assert headline(runs, select=None, baseline="erm").method == "best"
    assert headline({**runs, "best": runs["erm"]}, select=None, baseline="best").method in ("erm", "erm + threshold")


def test_groups_that_are_too_small_are_told_and_not_the_worst_unless_they_fail_beyond_doubt(record: Make) -> None:
    counts = {"hits": [[30, 1]], "sizes": [40, 3], "class_hits": [[31]], "class_sizes": [43]}
    both = {"val": counts, "test": counts}
    runs = {name: [record(0, [9, 3], name, split_counts=both, min_group=30)] for name in ("erm", "umix")}
    said = headline(runs, select=None, baseline="erm")
    assert said.worst.name == "a"
    assert judged_words(runs["umix"][0].summary(), 30) in said.notes


def test_a_collapsed_net_is_called_that(record: Make) -> None:
    counts = {"hits": [[10, 0]], "sizes": [10, 10], "class_hits": [[10, 0]], "class_sizes": [10, 10]}
    changes = {"split_counts": {"val": counts, "test": counts}, "classes": ["no", "yes"]}
    run = record(0, [5, 5], **changes)
    said = headline({"erm": [run]}, select=None, baseline="erm")
    assert f"erm: {collapse_words(run.summary())}" in said.notes


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
    said = headline(runs, select=None, baseline="erm")
    assert said.evidence == evidence
    assert reason in said.reasons


def test_a_difference_that_seeds_disagree_on_is_weak_evidence(record: Make) -> None:
    runs = {
        "erm": [scaled(record, seed, [10, 5], "erm") for seed in range(6)],
        "umix": [scaled(record, seed, [10, 4 if seed % 2 else 6], "umix") for seed in range(6)],
    }
    said = headline(runs, select=None, baseline="erm")
    assert said.evidence == "weak"
    interval = percents(compare({"toy": runs}).cells["toy"]["umix"].gains["worst"].interval, sign=True)
    assert said.reasons == (f"the gain over erm may be chance: its interval over seeds is {interval} points",)


def test_copies_of_a_fit_are_no_strong_evidence(record: Make) -> None:
    def copies(rates: list[int], method: str) -> list[RunRecord]:
        runs = [scaled(record, seed, rates, method) for seed in range(5)]
        for run in runs:
            run.split_counts["val"].tail_losses.append(0.5)
        return runs

    runs = {"erm": copies([10, 5], "erm"), "best": copies([8, 7], "best")}
    said = headline(runs, select=None, baseline="erm")
    assert said.evidence == "weak"
    assert said.reasons == (
        "all 5 seeds are the same fit, which counts once",
        "the gain over erm may be chance: with a single seed there is no interval",
    )


def test_validation_and_not_test_chooses_the_method_that_is_shown(record: Make) -> None:
    good = {"hits": [[10, 9]], "sizes": [10, 10], "class_hits": [[19]], "class_sizes": [20]}
    bad = {"hits": [[10, 1]], "sizes": [10, 10], "class_hits": [[11]], "class_sizes": [20]}
    runs = {
        "erm": [record(0, [5, 5])],
        "a": [record(0, [5, 5], "a", split_counts={"val": good, "test": bad})],
        "b": [record(0, [5, 5], "b", split_counts={"val": bad, "test": good})],
    }
    assert headline(runs, select=None, baseline="erm").method == "a"


def test_a_method_alone_is_compared_with_nothing(record: Make) -> None:
    said = headline({"umix": [record(0, [9, 5], "umix")]}, select=None, baseline=None)
    assert said.sentences[0].startswith("The model (umix) is least accurate for b: 50.0 %")
    assert said.sentences[1] == (
        "On average it gets 70.0 % right. There is nothing to compare with: no ordinary model (erm) was run with the same seed."
    )
    assert said.gain is None
    assert said.evidence == "weak"
