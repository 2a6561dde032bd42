from pathlib import Path

import polars
import pytest
import yaml

import umix
from umix.bench.runs.record import RunRecord
from umix.core.statistics import wilson


def card(run: RunRecord | umix.RunResult, folder: Path, **options: str) -> tuple[dict, str]:
    """The front matter and the text of a card."""
    exported = umix.export(run, folder / "README.md", **options)
    assert exported.check is None
    _, head, text = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(head), text


def test_the_head_is_what_the_hub_reads(record: RunRecord, tmp_path: Path) -> None:
    head, _ = card(record, tmp_path, license="mit")
    assert (head["license"], head["library_name"], head["pipeline_tag"]) == ("mit", "umix", "tabular-classification")
    (result,) = head["model-index"][0]["results"]
    assert result["dataset"]["name"] == "people.csv"
    values = {metric["name"]: metric["value"] for metric in result["metrics"]}
    summary = record.summary()
    assert values["accuracy, test"] == pytest.approx(summary.average, abs=1e-4)
    assert values["worst-group accuracy, test"] == pytest.approx(summary.worst, abs=1e-4)
    assert "license" not in card(record, tmp_path)[0]


def test_every_group_has_its_rate_size_and_interval_and_small_ones_are_marked(
    record: RunRecord, tmp_path: Path
) -> None:
    _, text = card(record, tmp_path)
    rates = record.summary().groups
    assert any(rate.judged for rate in rates.values())
    assert any(not rate.judged for rate in rates.values())
    for (name, rate), n_train in zip(rates.items(), record.train_sizes, strict=True):
        shown, interval = name if rate.judged else f"({name})", wilson(rate.hits, rate.size)
        ends = f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
        assert f"| {shown} | {100 * rate.rate:.1f} | {ends} | {rate.size} | {n_train} |" in text


def test_what_it_decides_on_which_data_and_its_limits_are_said(record: RunRecord, tmp_path: Path) -> None:
    _, text = card(record, tmp_path)
    for said in (
        "This model predicts `income`, which is `poor` or `rich`.",
        "Its inputs are 5 columns: age, hours-per-week, zip, sex, label.",
        "`sex` is among its inputs",
        "test rows: shown, does not decide.",
        "chosen by the worst group of the validation rows",
        "Data: `people.csv`, 180 training, 60 validation and 60 test rows.",
        "Groups: none train the model, those of validation rows choose the epoch, those of test rows are reported.",
        f"umix predict {record.directory.name} new.csv",
        f"The key of the run is `{record.key}`",
        "--set task.groups=sex" if "task.groups" in record.settings else "--set groups=sex",
    ):
        assert said in text


def test_without_groups_the_worst_group_is_unknown(coded: RunRecord, tmp_path: Path) -> None:
    head, text = card(coded, tmp_path)
    assert "The worst group is unknown: the data name no groups." in text
    assert "| poor |" in text
    assert "180 training, 60 validation and 60 test rows" in text
    (result,) = head["model-index"][0]["results"]
    assert [metric["name"] for metric in result["metrics"]] == ["accuracy, test"]


def test_a_run_on_a_benchmark_has_a_card(tmp_path: Path) -> None:
    small = {"sizes": [8, 4, 4, 8], "eval_size": 4}
    run = umix.train("four_moons", "erm", fit={"epochs": 1}, net="linear", **small)
    head, text = card(run, tmp_path)
    assert "pipeline_tag" not in head
    assert "umix.load_net" in text
    assert "umix predict" not in text


def test_rows_whose_group_is_not_known_count_as_training_rows(tmp_path: Path) -> None:
    rows = [
        (i % 7, "mf"[i % 2] if i % 5 else None, "yn"[i // 2 % 2], ["train", "val", "test"][i % 3]) for i in range(180)
    ]
    people = polars.DataFrame(rows, schema=["x", "sex", "rich", "part"], orient="row")
    task = umix.task_from_table(people, label="rich", groups=["sex"], split="part")
    _, text = card(umix.train(task, "erm", epochs=1), tmp_path)
    assert "60 training, 60 validation and 60 test rows" in text


def test_groups_of_one_column_are_headed_by_the_label_and_that_column(tmp_path: Path) -> None:
    rows = [(i % 7, "mf"[i % 2], "ab"[i // 2 % 2], "yn"[i // 4 % 2]) for i in range(160)]
    people = polars.DataFrame(rows, schema=["x", "sex", "town", "rich"], orient="row")
    task = umix.task_from_table(people, label="rich", groups=["sex", "town"])
    _, text = card(umix.train(task, "erm", epochs=1), tmp_path)
    for column in ("sex", "town"):
        assert f"**Test accuracy by rich and {column}**\n\n| rich, {column} | percent |" in text
