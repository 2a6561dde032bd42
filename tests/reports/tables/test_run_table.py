"""The table of one run."""

import io
from collections.abc import Callable

from rich.console import Console

from umix.bench.runs.record import RunRecord
from umix.reports.sentences import threshold_words
from umix.reports.tables.run_table import run_table


def shown(record: RunRecord) -> list[list[str]]:
    console = Console(file=io.StringIO(), width=120)
    console.print(run_table(record, record.summary()))
    return [line.replace("│", " ").split() for line in console.file.getvalue().splitlines()]


def test_groups_have_a_rate_an_interval_and_their_sizes(record: Callable[..., RunRecord]) -> None:
    lines = shown(record(0, [9, 5]))
    assert any(
        line[:4] == ["worst", "group:", "b", "50.0"] and line[-1] == "10" for line in lines
    )  # its interval and size
    assert ["a", "90.0", "[59.6,", "98.2]", "10", "90"] in lines
    assert ["b", "50.0", "[23.7,", "76.3]", "10", "10"] in lines


def test_without_groups_classes_are_shown(record: Callable[..., RunRecord]) -> None:
    counts = {"hits": [[]], "sizes": [], "class_hits": [[7]], "class_sizes": [10]}
    lines = shown(record(0, [1], groups=[], train_sizes=[], split_counts={"val": counts, "test": counts}))
    assert ["class", "only", "70.0", "[39.7,", "89.2]", "10"] in lines
    assert any("unknown:" in line for line in lines)


def test_what_a_run_found_is_said_in_words_after_what_it_chose(record: Callable[..., RunRecord]) -> None:
    found = {"spread": {"known": 30, "words": "the groups are estimated"}}
    assert threshold_words(record(0, [9, 5])) == ""
    assert threshold_words(record(0, [9, 5], choices=found)) == "the groups are estimated"
    both = record(0, [9, 5], choices={"eta": 3.0, "reason": "best", **found})
    assert threshold_words(both) == "auto: eta=3.0 (best); the groups are estimated"


def test_a_selection_is_told_in_its_own_sentences_one_to_a_line(record: Callable[..., RunRecord]) -> None:
    told = {
        "method": "erm",
        "chosen": "best chose erm.",
        "others": "Of every kind: erm 50%.",
        "candidates": [],
        "frontier": [],
    }
    spread = {"not tried": "dfr: too few rows.", "spread": {"known": 30, "words": "the groups are estimated"}}
    assert threshold_words(record(0, [9, 5], choices=told)) == "best chose erm.\nOf every kind: erm 50%."
    assert threshold_words(record(0, [9, 5], choices=told | spread)).split("\n")[2:] == [
        "Not tried: dfr: too few rows.",
        "The groups are estimated.",
    ]
    assert (
        threshold_words(record(0, [9, 5], choices={"method": "erm", "chosen": "best trained erm."}))
        == "best trained erm."
    )


def test_results_of_candidates_are_kept_but_not_said(record: Callable[..., RunRecord]) -> None:
    chosen = record(
        0, [9, 5], choices={"upweight": 3, "reason": "best", "candidates": [{"candidate": "jtt upweight=3"}]}
    )
    assert threshold_words(chosen) == "auto: upweight=3 (best)"


def test_a_class_that_looks_like_markup_is_shown_as_it_is(record: Callable[..., RunRecord]) -> None:
    counts = {"hits": [[]], "sizes": [], "class_hits": [[7, 0]], "class_sizes": [10, 5]}
    both = {"val": counts, "test": counts}
    found = record(0, [1], groups=[], train_sizes=[], classes=["[/]", "a, b"], split_counts=both)
    console = Console(file=io.StringIO(), width=120)
    console.print(run_table(found, found.summary().model_copy(update={"collapsed": "[/]"})))
    text = " ".join(console.file.getvalue().split())
    for expected in ("class [/]", 'class "a, b"', "it predicts '[/]' for every"):
        assert expected in text
