"""Grids of comparisons, word by word."""

from collections.abc import Callable

from umix.bench.runs.record import RunRecord
from umix.reports.comparison import compare
from umix.reports.tables.comparison_tables import (
    comparison_tables,
    gains_table,
    groups_table,
    paper_table,
    rates_table,
    rules_tables,
)
from umix.reports.tables.text_table import Entry, TextTable

Make = Callable[..., RunRecord]
Runs = dict[str, dict[str, list[RunRecord]]]


def texts(table: TextTable) -> list[list[str]]:
    """Header and rows, the best in stars."""
    return [
        table.full_header,
        *([f"*{entry.text}*" if entry.best else entry.text for entry in row] for row in table.rows),
    ]


def test_rates_are_named_percents_with_the_best_marked(runs: Runs) -> None:
    table = rates_table(compare(runs), "toy")
    rows = texts(table)
    assert rows[0] == ["method", "seeds", "average", "adjusted average", "group mean", "worst group", "95 % CI"]
    assert rows[2][:6] == ["erm", "2", "75.0 ± 7.1", "*87.0 ± 1.4*", "75.0 ± 7.1", "60.0 ± 14.1"]
    assert rows[1][:6] == ["umix", "2", "*82.5 ± 3.5*", "80.5 ± 0.7", "*82.5 ± 3.5*", "*80.0 ± 0.0*"]
    assert table.title == "toy: test rates, selected by worst"
    assert list(table.notes[2:]) == [
        "Worst group of umix: a. erm: b.",
        "Warning: fewer than 3 seeds (umix, erm).",
        "Warning: the worst group has 10 test examples, fewer than 30 (umix, erm).",
    ]


def test_a_column_names_the_learners_where_they_differ_and_a_note_where_they_do_not(record: Make) -> None:
    erm, best = record(0, [9, 7], net="mlp"), record(0, [9, 5], "best", net="trees")
    table = rates_table(compare({"toy": {"erm": [erm], "best": [best]}}), "toy")
    assert [row[2] for row in texts(table)] == ["learner", "mlp", "trees"]
    same = rates_table(compare({"toy": {"erm": [erm], "best": [best.model_copy(update={"net": "mlp"})]}}), "toy")
    assert "learner" not in same.header
    assert "Learner of every method: mlp." in same.notes


def test_a_method_far_below_the_baseline_and_one_that_collapsed_are_warned_of_in_every_table(record: Make) -> None:
    one_class = {"hits": [[10, 0]], "sizes": [10, 10], "class_hits": [[10, 0]], "class_sizes": [10, 10]}
    runs = {
        "erm": [record(0, [9, 7])],
        "near": [record(0, [9, 5], "near")],  # exactly ten points
        "far": [record(0, [6, 5], "far")],
        "one": [record(0, [1, 1], "one", classes=["no", "yes"], split_counts={"val": one_class, "test": one_class})],
    }
    said = [
        "one has collapsed in 1 seed: the selected net predicts one class.",
        "far is 25.0 points below erm on average.",
        "one is 30.0 points below erm on average.",
    ]
    comparison = compare({"toy": runs})
    tables = {"": rates_table(comparison, "toy"), "toy: ": paper_table(comparison)}
    tables["by worst, "] = rules_tables({"worst": comparison})[0]
    for where, table in tables.items():
        warned = [note for note in table.notes if "collapsed" in note or "points below" in note]
        assert warned == [f"Warning: {where}{sentence}" for sentence in said]


def test_differences_have_a_sign_an_interval_and_a_p_value(runs: Runs) -> None:
    assert texts(gains_table(compare(runs), "toy")) == [
        ["method", "average", "95 % CI", "p", "worst group", "95 % CI", "p"],
        ["umix", "+7.5 ± 3.5", "[+5.0, +10.0]", "0.500", "+20.0 ± 14.1", "[+10.0, +30.0]", "0.500"],
    ]


def test_fewer_common_seeds_than_seeds_are_said(runs: Runs) -> None:
    runs["toy"]["erm"] = runs["toy"]["erm"][:1]
    assert gains_table(compare(runs), "toy").notes[1:] == ["umix: 1 seed in common."]


def test_copies_have_neither_deviation_nor_p_value_and_are_warned_of(record: Make) -> None:
    erm = [record(seed, [9, 5], losses=[0.5]) for seed in range(3)]
    trees = [record(seed, [8, 7], "best", losses=[0.4]) for seed in range(3)]
    comparison = compare({"toy": {"erm": erm, "best": trees}})
    table, gains = rates_table(comparison, "toy"), gains_table(comparison, "toy")
    assert [row[:3] for row in texts(table)[1:]] == [["best", "3", "*75.0*"], ["erm", "3", "70.0"]]
    assert "Warning: all 3 seeds are the same fit, which counts once (best, erm)." in table.notes
    assert texts(gains)[1] == ["best", "+5.0", "–", "–", "+20.0", "–", "–"]
    assert gains.notes[1:] == ["best: 3 seeds, but 1 different pair of fits; copies count once."]


def test_the_table_says_what_varies_between_seeds(runs: Runs) -> None:
    assert "over seeds (another initialisation and order, the same split)" in rates_table(compare(runs), "toy").notes[0]


def test_the_note_says_whether_the_test_was_exact(record: Make) -> None:
    def note(*seeds: int) -> str:
        others = {f"m{n}": [record(seed, [8, 6 + seed % 2]) for seed in range(n)] for n in seeds}
        erm = [record(seed, [9, 5]) for seed in range(max(seeds))]
        return gains_table(compare({"toy": {"erm": erm, **others}}), "toy").notes[0]

    exact, drawn = "exact, which with n seeds never falls below 2 / 2^n", "from 10,000 random signs"
    assert note(2, 12).endswith(f"permutation test, {exact}.")
    assert note(13).endswith(f"permutation test, {drawn}.")
    assert note(12, 13).endswith(f"permutation test, {exact} (beyond 12 seeds {drawn}).")


def test_groups_are_shown_with_their_sizes(runs: Runs) -> None:
    assert texts(groups_table(compare(runs), "toy")) == [
        ["group", "n test", "erm", "umix"],
        ["a", "10", "*90.0 ± 0.0*", "80.0 ± 0.0"],
        ["b", "10", "60.0 ± 14.1", "*85.0 ± 7.1*"],
    ]


def test_a_task_without_groups_has_no_worst_group(record: Make) -> None:
    counts = {"hits": [[]], "sizes": [], "class_hits": [[7]], "class_sizes": [10]}
    one = record(0, [1, 1], groups=[], train_sizes=[], split_counts={"val": counts, "test": counts})
    (table,) = comparison_tables(compare({"toy": {"erm": [one]}}))
    assert texts(table)[1] == ["erm", "1", "70.0", "–", "–", "–", "–"]
    assert table.title == "toy: test rates, selected by worst_class"


def test_published_numbers_stand_beside_ours_where_the_paper_has_them(runs: Runs) -> None:
    comparison = compare({"waterbirds": runs["toy"], "camelyon17": runs["toy"]})
    waterbirds, camelyon = (texts(rates_table(comparison, task, with_published=True)) for task in comparison.cells)
    assert waterbirds[0][-2:] == ["paper's average", "paper's worst"]
    assert waterbirds[1][-2:] == ["93.0 ± 0.5", "90.0 ± 1.1"]
    assert camelyon[1][-2:] == ["75.1 ± 5.9", "–"]


def test_a_task_that_the_paper_does_not_have_says_so(runs: Runs) -> None:
    table = rates_table(compare(runs), "toy", with_published=True)
    assert table.header[-1] == "95 % CI"
    assert "The paper has no numbers for these methods on this task." in table.notes


def test_tasks_and_rules_that_the_paper_does_not_have_get_no_columns_and_a_note(runs: Runs) -> None:
    tasks = compare({"toy": runs["toy"], "waterbirds": runs["toy"]})
    table = paper_table(tasks, with_published=True)
    assert table.spans == [("toy", 2), ("waterbirds", 4)]
    assert "toy: the paper has no numbers for these methods." in table.notes
    rules = {rule: compare({"waterbirds": runs["toy"]}, select=rule) for rule in ("worst", "last")}
    (table,) = rules_tables(rules, with_published=True)
    assert table.spans == [("worst", 4), ("last", 2)]
    assert "last: the paper has no numbers for these methods." in table.notes
    (table,) = rules_tables({rule: compare(runs, select=rule) for rule in ("worst", "average")}, with_published=True)
    assert table.spans == [("worst", 2), ("average", 2)]
    assert "worst, average: the paper has no numbers for these methods." in table.notes
    assert not any(note.startswith("Published:") for note in table.notes)


def test_rules_side_by_side_come_from_one_set_of_runs(record: Make) -> None:
    """The second epoch has the higher average, the first the higher worst group."""
    runs = {"waterbirds": {"umix": [record(0, [[7, 7], [10, 5]], "umix")]}}
    comparisons = {rule: compare(runs, select=rule) for rule in ("worst", "average")}
    (table,) = rules_tables(comparisons)
    assert texts(table) == [
        ["method", "worst: average", "worst: worst group", "average: average", "average: worst group"],
        ["umix", "70.0", "70.0", "75.0", "50.0"],
    ]
    (table,) = rules_tables(comparisons, with_published=True)
    assert [row[3:5] + row[7:] for row in texts(table)] == [
        [
            "worst: paper's average",
            "worst: paper's worst",
            "average: paper's average",
            "average: paper's worst",
        ],
        ["93.0", "90.0", "93.6", "88.9"],
    ]


def test_equal_printed_rates_are_equally_good(record: Make) -> None:
    runs = {"toy": {"erm": [record(0, [9, 5])], "umix": [record(0, [9, 5], "umix")]}}
    assert [row[2] for row in rates_table(compare(runs), "toy").rows] == [Entry("70.0", best=True)] * 2
