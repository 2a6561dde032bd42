"""Comparisons as tables, CSV and JSON, and the paper's numbers beside them."""

import csv
import io
import json
import math
from collections.abc import Callable
from importlib import resources

from umix.bench.runs.record import RunRecord
from umix.core.statistics import Spread
from umix.methods.registry import METHODS
from umix.reports.comparison import compare
from umix.reports.tables.comparison_tables import (
    as_csv,
    as_json,
    comparison_tables,
    gains_table,
    paper_table,
    published,
    published_for_rule,
    rates_table,
    rules_tables,
)
from umix.reports.tables.text_table import Entry, TextTable, markdown

Make = Callable[..., RunRecord]
Runs = dict[str, dict[str, list[RunRecord]]]


def texts(table: TextTable) -> list[list[str]]:
    """Header and rows, the best in stars."""
    return [
        [*table.header],
        *([f"*{entry.text}*" if entry.best else entry.text for entry in row] for row in table.rows),
    ]


def test_the_tables_of_a_task_word_by_word(runs: Runs) -> None:
    assert markdown(comparison_tables(compare({"waterbirds": runs["toy"]}), with_published=True, groups=True)) == (
        "**waterbirds: test rates, selected by worst**\n"
        "\n"
        "| method | seeds | average | adjusted average | group mean | worst group | 95 % CI | paper's average | paper's worst |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        "| umix | 2 | **82.5 ± 3.5** | 80.5 ± 0.7 | **82.5 ± 3.5** | **80.0 ± 0.0** | [49.0, 94.3] | 93.0 ± 0.5 | 90.0 ± 1.1 |\n"
        "| erm | 2 | 75.0 ± 7.1 | **87.0 ± 1.4** | 75.0 ± 7.1 | 60.0 ± 14.1 | [31.7, 82.8] | 97.0 ± 0.2 | 63.7 ± 1.9 |\n"
        "\n"
        "Test accuracy in percent, mean ± standard deviation over seeds (another initialisation and order, the same split), at the "
        "epoch that the rule selects on validation. Average: over all test examples. Adjusted average: group rates weighted by the "
        "groups' shares of the training split.\n"
        "CI: 95 % interval of the worst group within a run (Wilson's; its ends averaged over seeds).\n"
        "Worst group of umix: a. erm: b.\n"
        "Published: Han et al., NeurIPS 2022. Its averages are not all of one kind: ERM's on Waterbirds can only be the adjusted "
        "one, UMIX's is the plain one.\n"
        "Warning: fewer than 3 seeds (umix, erm).\n"
        "Warning: the worst group has 10 test examples, fewer than 30 (umix, erm).\n"
        "\n"
        "**waterbirds: differences to erm**\n"
        "\n"
        "| method | average | 95 % CI | p | worst group | 95 % CI | p |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        "| umix | +7.5 ± 3.5 | [+5.0, +10.0] | 0.500 | +20.0 ± 14.1 | [+10.0, +30.0] | 0.500 |\n"
        "\n"
        "Differences in percentage points, seed by seed; CI: 95 % bootstrap interval over seeds; p: two-sided sign-flip "
        "permutation test, exact, which with n seeds never falls below 2 / 2^n.\n"
        "\n"
        "**waterbirds: test rates of the groups**\n"
        "\n"
        "| group | n test | erm | umix |\n"
        "| --- | ---: | ---: | ---: |\n"
        "| a | 10 | **90.0 ± 0.0** | 80.0 ± 0.0 |\n"
        "| b | 10 | 60.0 ± 14.1 | **85.0 ± 7.1** |\n"
        "\n"
    )


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


def test_the_note_says_whether_the_test_was_exact(record: Make) -> None:
    def note(*seeds: int) -> str:
        others = {f"m{n}": [record(seed, [8, 6 + seed % 2]) for seed in range(n)] for n in seeds}
        erm = [record(seed, [9, 5]) for seed in range(max(seeds))]
        return gains_table(compare({"toy": {"erm": erm, **others}}), "toy").notes[0]

    exact, drawn = "exact, which with n seeds never falls below 2 / 2^n", "from 10,000 random signs"
    assert note(2, 12).endswith(f"permutation test, {exact}.")
    assert note(13).endswith(f"permutation test, {drawn}.")
    assert note(12, 13).endswith(f"permutation test, {exact} (beyond 12 seeds {drawn}).")


def test_a_task_without_groups_has_no_worst_group(record: Make) -> None:
    counts = {"hits": [[]], "sizes": [], "class_hits": [[7]], "class_sizes": [10]}
    one = record(0, [1, 1], groups=[], train_sizes=[], split_counts={"val": counts, "test": counts})
    (table,) = comparison_tables(compare({"toy": {"erm": [one]}}))
    assert texts(table)[1] == ["erm", "1", "70.0", "–", "–", "–", "–"]
    assert table.title == "toy: test rates, selected by balanced"


def test_published_numbers_stand_beside_ours_where_the_paper_has_them(runs: Runs) -> None:
    comparison = compare({"camelyon17": runs["toy"], "toy": runs["toy"]})
    camelyon, toy = (rates_table(comparison, task, with_published=True) for task in comparison.cells)
    assert texts(camelyon)[1][-2:] == ["75.1 ± 5.9", "–"]
    assert toy.header[-1] == "95 % CI"
    assert "The paper has no numbers for these methods on this task." in toy.notes


def test_tasks_and_rules_that_the_paper_does_not_have_get_no_columns_and_a_note(runs: Runs) -> None:
    tasks = compare({"toy": runs["toy"], "waterbirds": runs["toy"]})
    table = paper_table(tasks, with_published=True)
    assert list(table.header[1:4]) == ["toy: average", "toy: worst group", "waterbirds: average"]
    assert list(table.header[5:]) == ["waterbirds: paper's average", "waterbirds: paper's worst"]
    assert "toy: the paper has no numbers for these methods." in table.notes
    rules = {rule: compare({"waterbirds": runs["toy"]}, select=rule) for rule in ("worst", "last")}
    (table,) = rules_tables(rules, with_published=True)
    assert [name.partition(":")[0] for name in table.header[1:]] == ["worst"] * 4 + ["last"] * 2
    assert "last: the paper has no numbers for these methods." in table.notes
    (table,) = rules_tables({rule: compare(runs, select=rule) for rule in ("worst", "average")}, with_published=True)
    assert len(table.header) == 5
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


def test_csv_holds_rates_between_zero_and_one_and_is_empty_where_there_is_no_number(runs: Runs) -> None:
    erm, umix = csv.DictReader(io.StringIO(as_csv([compare(runs)])))
    named = (erm["task"], erm["method"], erm["select"], erm["seeds"], erm["n_seeds"])
    assert named == ("toy", "erm", "worst", "0 1", "2")
    assert (erm["worst_mean"], erm["worst_std"], erm["worst_gain_mean"]) == ("0.6", "0.141421", "")
    assert (umix["worst_gain_mean"], umix["worst_gain_p_flip"], umix["worst_gain_p_sign"]) == ("0.2", "0.5", "0.5")
    assert "published_worst_mean" not in erm


def test_json_has_the_rows_of_all_rules_with_groups_and_published_numbers(runs: Runs) -> None:
    comparisons = [compare({"waterbirds": runs["toy"]}, select=rule) for rule in ("worst", "average")]
    content = json.loads(as_json(comparisons, with_published=True))
    assert content["baseline"] == "erm"
    assert [(row["select"], row["method"]) for row in content["rows"]] == [
        ("worst", "erm"),
        ("worst", "umix"),
        ("average", "erm"),
        ("average", "umix"),
    ]
    first = content["rows"][0]
    assert first["groups"]["b"] == {"mean": 0.6, "std": 0.141421}
    assert (first["seeds"], first["published_worst_mean"]) == ([0, 1], 0.637)
    assert first["doubts"][0] == "fewer than 3 seeds"


def test_published_numbers_are_rates_of_methods_that_can_be_run() -> None:
    assert published("waterbirds", "erm") == {"average": Spread(0.97, 0.002), "worst": Spread(0.637, 0.019)}
    assert published("waterbirds", "dfr") == published("colored_digits", "umix") == {}


def test_numbers_that_were_published_without_a_deviation_have_none() -> None:
    worst = published("waterbirds", "jtt")["worst"]
    assert worst.mean == 0.86
    assert math.isnan(worst.std)
    assert published_for_rule("celeba", "umix", "average")["worst"].mean == 0.846
    assert published_for_rule("waterbirds", "erm", "worst") == {}
    content = json.loads((resources.files("umix.reports") / "published.json").read_text())
    assert set(content["methods"]) <= set(METHODS)


def test_a_column_says_what_each_method_used_groups_for(record: Make) -> None:
    runs = {
        "erm": [record(0, [9, 3], group_use="none")],
        "group_dro": [record(0, [8, 7], "group_dro", group_use="training")],
    }
    comparison = compare({"toy": runs})
    header, *rows = texts(rates_table(comparison, "toy"))
    assert [row[header.index("groups used for")] for row in rows] == ["training", "choosing"]
    assert {row["method"]: row["groups_used_for"] for row in csv.DictReader(io.StringIO(as_csv([comparison])))} == {
        "erm": "choosing",
        "group_dro": "training",
    }
