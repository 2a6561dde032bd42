"""A run's thresholds: kept beside its record, chosen with the epoch, and the same in every number of the run."""

import shutil
from pathlib import Path

import numpy as np
import polars
import pytest
import torch

import umix
from umix.bench.runs.example_tables import read_held_out
from umix.bench.runs.execute import execute
from umix.bench.runs.load_net import load_net
from umix.bench.runs.record import RunRecord, load_run
from umix.bench.spec.run_spec import RunSpec
from umix.core.evaluation import EVERY_GROUP, Evaluation
from umix.core.selection import RULES, Threshold, best_choice, best_epoch
from umix.core.thresholds import predicted_classes
from umix.data.registry import load_task
from umix.errors import UserError
from umix.run_folder import THRESHOLDS

SIZES = {"sizes": [20, 120, 20, 120], "eval_size": 40}  # the second class is common
FAST = {"epochs": 4, "hidden": [8], **SIZES}


def spec(**settings: object) -> RunSpec:
    return RunSpec(task="four_moons", method="erm", settings={**FAST, **settings})


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return execute(spec(), out=tmp_path_factory.mktemp("runs")).directory


@pytest.fixture
def record(finished: Path) -> RunRecord:
    return load_run(finished)


@pytest.mark.parametrize("how", ["tuned", "off"])
@pytest.mark.parametrize("rule", ["worst", "average", "worst_class", "last"])
def test_a_summary_counts_what_the_kept_net_predicts_with_the_chosen_biases(
    record: RunRecord, rule: str, how: Threshold
) -> None:
    test = load_task("four_moons", **SIZES).splits["test"]
    choice = record.choice(rule, how)
    with torch.no_grad():
        logits = load_net(record, epoch=choice.epoch)(test.x)
    correct = (predicted_classes(logits, torch.from_numpy(record.biases(choice))) == test.y).numpy()
    summary = record.summary(rule, how)
    assert summary.epoch == choice.epoch
    assert [rate.hits for rate in summary.groups.values()] == (correct @ test.member.numpy().astype(int)).tolist()
    assert summary.average == correct.mean()


def test_the_choice_is_at_least_as_good_on_validation_as_argmax(record: RunRecord) -> None:
    score = record.validation_score("worst")
    assert score > record.with_threshold("off").validation_score("worst")  # here it is better
    assert record.choice("worst") == best_choice(record.threshold_counts["val"], "worst")


def test_argmax_is_what_was_chosen_before_there_were_thresholds(record: RunRecord) -> None:
    for rule in RULES:
        if record.has(rule):
            assert record.best_epoch(rule, "off") == best_epoch(record.counts["val"], rule)
    summary = record.summary("worst", "off")
    assert (summary.threshold_mode, summary.biases) == ("off", None)
    plain = record.model_copy(update={"calibrations": {}})
    assert plain.summary("worst", "off").threshold == 0.5


def test_the_threshold_is_the_probability_that_the_bias_means(record: RunRecord) -> None:
    summary = record.summary("worst")
    assert summary.threshold_mode == "tuned"
    assert summary.biases is not None
    first, second = summary.biases.values()
    uncalibrated = record.model_copy(update={"calibrations": {}}).summary("worst")
    assert uncalibrated.threshold == pytest.approx(1 / (1 + np.exp(second - first)))
    scale, *added = record.calibrations[summary.epoch]
    log_odds = scale * (first - second) + added[1] - added[0]
    assert summary.threshold == pytest.approx(1 / (1 + np.exp(-log_odds)))


@pytest.mark.parametrize("how", ["tuned", "off"])
def test_kept_predictions_are_those_of_the_threshold(record: RunRecord, how: Threshold) -> None:
    table = read_held_out(record.with_threshold(how)).filter(polars.col("split") == "test")
    hits = (table["label"] == table["prediction"]).to_numpy()
    summary = record.summary(threshold=how)
    assert hits.mean() == summary.average
    p = np.stack([table[f"p {k}"].to_numpy() for k in range(2)], axis=1)
    prediction = table["prediction"].to_numpy()
    assert np.array_equal(prediction, (p[:, 1] > summary.threshold).astype(int))
    assert np.array_equal(table["confidence"].to_numpy(), p[np.arange(len(p)), prediction])


def test_weights_are_kept_for_every_rule_with_and_without_biases(record: RunRecord) -> None:
    for rule in filter(record.has, RULES):
        for how in ("off", "tuned"):
            assert load_net(record, epoch=record.best_epoch(rule, how)) is not None


def test_a_run_without_the_file_of_thresholds_decides_by_argmax(finished: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(finished, tmp_path / "run")
    (copy / THRESHOLDS).unlink()
    record = load_run(copy)
    summary = record.summary("worst")
    assert summary == load_run(finished).summary("worst", "off")
    assert summary.biases is None


def test_a_run_that_is_told_argmax_is_another_run_and_keeps_to_it(tmp_path: Path) -> None:
    assert spec(threshold="tuned").key == spec().key != spec(threshold="off").key
    record = execute(spec(threshold="off"), out=tmp_path)
    assert record.threshold == "off"
    assert record.summary() == record.summary(threshold="off")
    assert not (record.directory / "predictions-argmax.parquet").exists()
    with pytest.raises(UserError, match="keeps its predictions by argmax alone; train it with threshold=tuned"):
        read_held_out(record.with_threshold("tuned"))


def test_a_run_in_memory_decides_as_one_in_a_folder(record: RunRecord) -> None:
    result = umix.train("four_moons", "erm", **FAST)
    assert result.summary() == record.summary()
    assert result.summary(threshold="off") == record.summary(threshold="off")
    frame = result.frame()
    assert (frame["label"] == frame["prediction"]).mean() == result.summary().average
    assert umix.train("four_moons", "erm", threshold="off", **FAST).summary() == record.summary(threshold="off")


def test_settings_of_published_results_judge_every_group_by_its_raw_rate_and_by_argmax() -> None:
    plans = {preset: RunSpec(task="waterbirds", method="erm", preset=preset).plan for preset in ("paper", "default")}
    assert (plans["paper"].evaluation.threshold, plans["paper"].evaluation.rules) == ("off", EVERY_GROUP)
    assert (plans["default"].evaluation.threshold, plans["default"].evaluation.rules) == ("tuned", Evaluation())
    told = RunSpec(
        task="waterbirds", method="erm", preset="paper", settings={"evaluation.min_group": 10}
    ).plan.evaluation
    assert (told.min_group, told.prior, told.threshold) == (10, 0.0, "off")


def test_a_run_can_be_read_as_papers_judge(record: RunRecord) -> None:
    assert record.threshold_counts["val"].evaluation.prior > 0
    raw = record.by_raw_rates()
    assert raw.threshold_counts["val"].evaluation.prior == 0
    assert (raw.threshold, raw.counts["test"].evaluation) == ("off", EVERY_GROUP)
    assert record.counts["test"].evaluation != EVERY_GROUP
    assert raw.summary().epoch == record.summary(threshold="off").epoch  # its groups are large


def test_an_unknown_way_to_decide_is_refused(record: RunRecord) -> None:
    with pytest.raises(UserError, match="Unknown threshold 'coin'"):
        record.summary(threshold="coin")  # type: ignore[arg-type]
