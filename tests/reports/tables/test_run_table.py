"""The table of one run."""

import io
from collections.abc import Callable

from rich.console import Console

from umix.bench.runs.record import RunRecord
from umix.reports.sentences import threshold_words
from umix.reports.tables.run_table import result_table, run_table
from umix.reports.tables.text_table import TextTable


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


def texts(table: TextTable) -> list[list[str]]:
    return [[entry.text for entry in row] for row in table.rows]


def test_a_run_is_shown_beside_an_ordinary_one_with_its_worst_group_first(record: Callable[..., RunRecord]) -> None:
    chosen, ordinary = record(0, [8, 7], "best"), record(0, [9, 5])
    table = result_table(chosen, chosen.summary(), ordinary.summary())
    assert table.header == ["accuracy on test, %", "ordinary", "chosen", "95 % interval", "n"]
    assert texts(table) == [
        ["worst group: b", "50.0", "70.0", "[39.7, 89.2]", "10"],
        ["average", "70.0", "75.0", "(always only: 100.0)", "20"],
        ["  a", "90.0", "80.0", "[49.0, 94.3]", "10"],
    ]
    assert table.notes == []


def test_another_worst_group_of_the_ordinary_model_is_named(record: Callable[..., RunRecord]) -> None:
    chosen, ordinary = record(0, [8, 7], "umix"), record(0, [4, 5])
    table = result_table(chosen, chosen.summary(), ordinary.summary())
    assert table.header[1:3] == ["ordinary", "umix"]
    assert texts(table)[0][:3] == ["worst group: b", "40.0", "70.0"]
    assert ["  b", "50.0", "70.0"] in [row[:3] for row in texts(table)]
    assert table.notes == ["Worst group of the ordinary model: a."]


def test_the_worst_group_of_the_ordinary_model_is_shown_even_where_others_are_worse(
    record: Callable[..., RunRecord],
) -> None:
    more = {"groups": [f"g{k}" for k in range(14)], "train_sizes": [1] * 14}
    chosen, ordinary = record(0, [*range(1, 8), *[8] * 6, 9], "best", **more), record(0, [*[5] * 13, 0], **more)
    rows = texts(result_table(chosen, chosen.summary(), ordinary.summary()))
    assert [row[:3] for row in rows[2:4]] == [["  g0", "50.0", "10.0"], ["  g13", "0.0", "90.0"]]


def test_of_many_groups_the_ten_worst_others_are_shown(record: Callable[..., RunRecord]) -> None:
    names = [f"g{k}" for k in range(14)]
    many = record(0, [k % 10 for k in range(14)], groups=names, train_sizes=[1] * 14)
    table = result_table(many, many.summary(), all_groups="umix table")
    assert len(table.rows) == 2 + 10
    assert table.rows[2][0].text == "  g10"  # as wrong as the worst, and equally large
    assert table.notes[0] == "and 3 more: umix table"


def test_a_group_too_small_to_judge_comes_last_in_parentheses(record: Callable[..., RunRecord]) -> None:
    counts = {"hits": [[30, 1]], "sizes": [40, 3], "class_hits": [[31]], "class_sizes": [43]}
    small = record(0, [1], split_counts={"val": counts, "test": counts}, min_group=30)
    table = result_table(small, small.summary())
    assert texts(table)[-1][0] == "  (b)"
    assert table.notes == ["'b' has only 3 test rows: shown, does not decide."]


def test_without_groups_the_worst_class_comes_first(record: Callable[..., RunRecord]) -> None:
    counts = {"hits": [[]], "sizes": [], "class_hits": [[7, 9]], "class_sizes": [10, 20]}
    both = {"val": counts, "test": counts}
    alone = record(0, [1], groups=[], train_sizes=[], classes=["no", "yes"], split_counts=both, min_group=30)
    table = result_table(alone, alone.summary())
    assert texts(table)[2][0] == "  no"  # classes are judged however small they are
    assert texts(table)[0][:2] == ["worst class: yes", "45.0"]
    assert texts(table)[1][2] == "(always yes: 66.7)"
    assert table.notes == ["The worst group is unknown: this task has no groups."]


def test_what_a_run_found_is_said_in_words_after_what_it_chose(record: Callable[..., RunRecord]) -> None:
    found = {"spread": {"known": 30, "words": "the groups are estimated"}}
    assert threshold_words(record(0, [9, 5])) == ""
    assert threshold_words(record(0, [9, 5], choices=found)) == "the groups are estimated"
    both = record(0, [9, 5], choices={"eta": 3.0, "reason": "best", **found})
    assert threshold_words(both) == "Chosen: eta=3.0 (best); the groups are estimated"


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
    assert threshold_words(chosen) == "Chosen: upweight=3 (best)"


def test_a_class_that_looks_like_markup_is_shown_as_it_is(record: Callable[..., RunRecord]) -> None:
    counts = {"hits": [[]], "sizes": [], "class_hits": [[7, 0]], "class_sizes": [10, 5]}
    both = {"val": counts, "test": counts}
    found = record(0, [1], groups=[], train_sizes=[], classes=["[/]", "a, b"], split_counts=both)
    console = Console(file=io.StringIO(), width=120)
    console.print(run_table(found, found.summary().model_copy(update={"collapsed": "[/]"})))
    text = " ".join(console.file.getvalue().split())
    for expected in ("class [/]", 'class "a, b"', "it predicts '[/]' for every"):
        assert expected in text
