"""Which records belong together."""

import re
from collections.abc import Callable

from umix.bench.runs.record import RunRecord
from umix.reports.arrange import arrange

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
    codes = {"task": {**table, "categories": "codes"}, "fit": {"epochs": 5, "lr": 1.0}}
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


def test_runs_of_an_earlier_version_on_the_same_data_are_of_the_same_task(record: Make) -> None:
    assert seeds(arrange([record(0, [1, 1]), record(1, [1, 1], rows="r")])) == {"toy": {"erm": [0, 1]}}


def test_a_run_that_lies_in_two_folders_counts_once(record: Make) -> None:
    assert seeds(arrange([record(0, [1, 1]), record(0, [1, 1])])) == {"toy": {"erm": [0]}}
