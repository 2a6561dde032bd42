"""Which records belong together, and the rows of a comparison: ERM by argmax, and beside it with a chosen threshold."""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from umix.bench.runs.record import RunRecord
from umix.reports.arrange import arrange, plain_row, threshold_rows
from umix.reports.comparison import compare
from umix.reports.page.headline import headline
from umix.reports.regret import outcomes
from umix.reports.sentences import choice_words
from umix.reports.tables.comparison_tables import rates_table

Make = Callable[..., RunRecord]


def seeds(arranged: dict[str, dict[str, list[RunRecord]]]) -> dict[str, dict[str, list[int]]]:
    return {task: {label: [r.seed for r in found] for label, found in rows.items()} for task, rows in arranged.items()}


def test_records_are_arranged_by_task_and_method_with_seeds_in_order(record: Make) -> None:
    found = [
        record(1, [1, 1], "umix"),
        record(0, [1, 1], "umix"),
        record(0, [1, 1]),
        record(3, [1, 1], task="data/x.csv"),
    ]
    assert seeds(arrange(found)) == {"toy": {"erm": [0], "umix": [0, 1]}, "x.csv": {"erm": [3]}}


def test_settings_that_differ_are_in_the_label_and_others_are_not(record: Make) -> None:
    found = [record(s, [1, 1], "umix", options={"eta": 5, "sigma": sigma}) for s in (0, 1) for sigma in (0.0, 0.5)]
    assert seeds(arrange(found)) == {"toy": {"umix sigma=0.0": [0, 1], "umix sigma=0.5": [0, 1]}}


def test_the_order_of_settings_makes_no_difference(record: Make) -> None:
    found = [
        record(0, [1, 1], "umix", options={"a": 1, "b": 2}),
        record(1, [1, 1], "umix", options={"b": 2, "a": 1}),
    ]
    assert seeds(arrange(found)) == {"toy": {"umix": [0, 1]}}


def test_other_data_are_another_task(record: Make) -> None:
    found = [record(0, [1, 1]), record(1, [1, 1], fingerprint="g")]
    assert seeds(arrange(found)) == {"toy data=f": {"erm": [0]}, "toy data=g": {"erm": [1]}}


def test_a_file_that_changed_has_one_short_hash(record: Make) -> None:
    def read(content: str, fingerprint: str) -> RunRecord:
        plan = {"task": {"path": "x.csv", "content": content * 32}, "method": {"name": "erm"}}
        return record(0, [1, 1], task="x.csv", key=content, fingerprint=fingerprint * 64, plan=plan)

    names = list(arrange([read("a", "f"), read("b", "g"), read("c", "g")]))
    assert len(names) == 3
    assert all(re.fullmatch(r"x\.csv data=[0-9a-f]{8}", name) for name in names)


def test_the_form_of_inputs_that_a_learner_wants_makes_no_other_task(record: Make) -> None:
    table = {"name": "table", "path": "x.csv", "label": "y", "content": "a" * 32}

    def read(seed: int, net: dict[str, object], **changes: object) -> RunRecord:
        plan = {"task": table, "method": {"name": "erm"}, "net": net, "fit": {"epochs": 5, "lr": 0.1}}
        return record(seed, [1, 1], task="x.csv", rows="r", plan={**plan, **changes}, key=f"{net}{seed}")

    asked = {"task": table, "fit": {"epochs": 5}}
    codes = {"task": {**table, "form": "another"}, "fit": {"epochs": 5, "lr": 1.0}}
    nets = [read(seed, {"name": "mlp", "hidden": [8]}) for seed in (0, 1)]
    trees = [read(seed, {"name": "trees", "depth": 3}, **codes) for seed in (0, 1)]
    trees = [run.model_copy(update={"asked": asked, "fingerprint": "g"}) for run in trees]
    assert seeds(arrange([*nets, *trees])) == {"x.csv": {"erm net=mlp": [0, 1], "erm net=trees": [0, 1]}}
    wide = read(0, {"name": "mlp", "hidden": [9]})
    assert list(arrange([*nets, wide, *trees])["x.csv"]) == [
        "erm net=mlp net.hidden=[8]",
        "erm net=mlp net.hidden=[9]",
        "erm net=trees",
    ]


def test_other_rows_are_another_task_though_their_file_is_the_same(record: Make) -> None:
    plan = {"task": {"path": "x.csv", "content": "a" * 32}, "method": {"name": "erm"}}
    runs = [record(0, [1, 1], task="x.csv", key=rows, rows=rows, plan=plan) for rows in ("r", "s")]
    assert len(arrange(runs)) == 2


def test_a_run_that_lies_in_two_folders_counts_once(record: Make) -> None:
    assert seeds(arrange([record(0, [1, 1]), record(0, [1, 1])])) == {"toy": {"erm": [0]}}


HITS = [[90, 40], [70, 75]]  # of the two groups, which are the classes: by argmax, and with the second bias


@pytest.fixture
def decided(record: Make) -> Make:
    """A run of two groups of 100 with one class each: argmax has 40 % in the worst, the other threshold 70 %."""

    def make(seed: int = 0, method: str = "erm", hits: list[list[int]] = HITS, **changes: object) -> RunRecord:
        rows = {"hits": hits[:1], "sizes": [100, 100], "class_hits": hits[:1], "class_sizes": [100, 100]}
        counts = {**rows, "composition": [[100, 0], [0, 100]], "tail_losses": changes.pop("losses", [])}
        made = record(
            seed,
            [1, 1],
            method,
            classes=["no", "yes"],
            split_counts={"val": counts, "test": counts},
            group_use="none",
            **changes,
        )
        biases = np.array([[0.0, 0.0], [0.0, float(np.log(3))]])
        every = np.array([[[*row, *row] for row in hits]])
        made.keep_thresholds(
            {name: replace(split, biases=biases, threshold_hits=every) for name, split in made.counts.items()}
        )
        return made

    return make


def test_erm_has_a_row_by_argmax_and_one_with_a_threshold(decided: Make) -> None:
    runs = {"toy": {"erm": [decided(0), decided(1)], "umix": [decided(0, "umix")]}}
    comparison = compare(threshold_rows(runs))
    cells = comparison.cells["toy"]
    assert list(cells) == ["erm", "erm + threshold", "umix"]
    assert [cell.rates["worst"].mean for cell in cells.values()] == [0.4, 0.7, 0.7]
    assert [cell.threshold for cell in cells.values()] == ["off", "tuned", "tuned"]
    assert comparison.baseline == "erm"
    assert cells["erm + threshold"].gains["worst"].spread.mean == pytest.approx(0.3)
    assert cells["erm + threshold"].groups_used_for == cells["erm"].groups_used_for == "choosing"
    notes = rates_table(comparison, "toy").notes
    assert any(note.startswith("Most probable class predicted: erm. Threshold (biases") for note in notes)


def test_by_argmax_there_is_no_second_row(decided: Make) -> None:
    runs = {"toy": {"erm": [decided()], "umix": [decided(0, "umix")]}}
    cells = compare(threshold_rows(runs, threshold="off")).cells["toy"]
    assert {label: cell.rates["worst"].mean for label, cell in cells.items()} == {"erm": 0.4, "umix": 0.4}
    assert list(threshold_rows(runs, select="last")["toy"]) == ["erm", "umix"]  # a rule that biases do not change


def test_runs_that_were_told_argmax_or_have_no_other_threshold_are_shown_by_argmax(record: Make, decided: Make) -> None:
    plan = {"task": {"name": "toy"}, "evaluation": {"threshold": "off"}}
    runs = {"toy": {"erm": [decided(plan=plan)], "umix": [record(0, [9, 5], "umix")]}}
    cells = compare(threshold_rows(runs)).cells["toy"]
    assert {label: cell.threshold for label, cell in cells.items()} == {"erm": "off", "umix": "off"}
    told = compare(threshold_rows(runs, threshold="tuned")).cells["toy"]
    assert list(told) == ["erm", "erm + threshold", "umix"]


def test_the_row_of_erm_alone_is_by_argmax(decided: Make) -> None:
    assert plain_row(decided()).summary().worst == 0.4
    assert plain_row(decided(0, "umix")).summary().worst == 0.7


def test_a_threshold_may_be_what_validation_prefers(decided: Make) -> None:
    rows = threshold_rows({"toy": {"erm": [decided()]}})["toy"]
    said = headline(rows, select=None, baseline="erm")
    assert said.method == "erm + threshold"
    assert said.gain is not None
    assert said.gain.mean == pytest.approx(0.3)


def test_a_method_is_also_compared_with_a_threshold_alone(decided: Make) -> None:
    rows = threshold_rows(
        {
            "toy": {
                "erm": [decided(seed, losses=[0.1 * seed]) for seed in range(5)],
                "umix": [decided(seed, "umix", [[90, 50], [72, 76]], losses=[0.2 + 0.1 * seed]) for seed in range(5)],
            }
        }
    )["toy"]
    said = headline(rows, select=None, baseline="erm")
    assert said.method == "umix"
    assert said.sentences[2] == (
        "Choosing only the threshold (erm + threshold) gives 75.0 % there; umix gets 1.0 points more."
    )
    assert said.over_threshold is not None
    assert said.over_threshold.mean == pytest.approx(0.02)
    assert said.evidence == "strong"
    assert said.reasons[:2] == (
        "the worst group changes by [+32.0, +32.0] points over 5 seeds",
        "against erm + threshold by [+2.0, +2.0] points",
    )


def test_the_evidence_is_weak_where_a_threshold_alone_does_as_much(decided: Make) -> None:
    better = [[90, 50], [72, 76]]
    runs = {
        "erm": [decided(seed) for seed in range(5)],
        "umix": [decided(seed, "umix", better if seed % 2 else HITS) for seed in range(5)],
    }
    rows = threshold_rows({"toy": runs})["toy"]
    said = headline(rows, select=None, baseline="erm")
    assert (said.method, said.evidence) == ("umix", "weak")
    assert any(
        reason.startswith("the gain over erm + threshold may be chance: its interval") for reason in said.reasons
    )


def test_regret_is_measured_against_an_oracle_that_decides_too(decided: Make) -> None:
    found = {(one.method, one.rule): one for one in outcomes(threshold_rows({"toy": {"erm": [decided()]}}))}
    assert found["erm + threshold", "oracle_test"].worst.mean == 0.7
    assert found["erm + threshold", "worst"].regret.mean == 0.0
    assert found["erm + threshold", "last"].regret.mean == pytest.approx(0.3)
    assert found["erm", "oracle_test"].worst.mean == 0.4


def test_a_run_says_its_threshold_and_what_argmax_would_give(record: Make, decided: Make) -> None:
    run = decided()
    assert choice_words(run, run.summary()) == (
        "Threshold 0.25 for yes, chosen on validation; without it the worst group is at 40.0 %."
    )
    same = decided(hits=[[90, 80], [70, 75]])
    assert choice_words(same, same.summary()) == "Threshold 0.5: no other was better on validation."
    assert choice_words(run.with_threshold("off"), run.summary(threshold="off")) == ""
    many = run.summary().model_copy(update={"threshold": None, "biases": {"a": 1.25, "b": -0.0004, "c": 0.0}})
    assert "predicted: a +1.25, b -0.0004, chosen" in choice_words(run, many)
    old = record(0, [9, 5])
    assert choice_words(old, old.summary()) == (
        "The class with the largest logit is predicted (others not tried: too many groups or classes)."
    )
