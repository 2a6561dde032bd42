"""Executing specs: records, reuse, refusal."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from umix import load_net, load_run
from umix.bench.runs.execute import execute
from umix.bench.runs.paths import RunPaths
from umix.bench.spec.run_spec import RunSpec
from umix.checkpoint_pace import EVERY_EPOCH
from umix.core.selection import RULES
from umix.data.registry import load_task
from umix.errors import UserError
from umix.run_folder import EXAMPLE_FEATURES
from umix.store import read_arrays
from umix.training.evaluate import correctness

FAST = {"epochs": 3, "hidden": [8], "sizes": [40, 8, 8, 40], "eval_size": 10}


def spec(method: str = "umix", **settings: object) -> RunSpec:
    return RunSpec(task="four_moons", method=method, settings={**FAST, **settings})


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one finished run; tests copy it before they change anything."""
    out = tmp_path_factory.mktemp("runs")
    execute(spec(length=2), out=out)
    return out


def test_counts_are_those_of_a_bare_evaluation_of_the_saved_net(finished: Path) -> None:
    record = execute(spec(length=2), out=finished)
    test = load_task("four_moons", sizes=FAST["sizes"], eval_size=10).splits["test"]
    for rule in ("worst", "last"):
        epoch = record.summary(rule).epoch
        correct = correctness(load_net(record, select=rule), test, batch_size=8).numpy()
        expected = [int(correct[test.group.numpy() == g].sum()) for g in range(4)]
        assert record.counts["test"].hits[epoch].tolist() == expected


def test_summary_names_every_rate(finished: Path) -> None:
    record = execute(spec(length=2), out=finished)
    summary = record.summary(select="worst", threshold="off")
    rates = [group.rate for group in summary.groups.values()]
    assert summary.worst == min(rates)
    assert summary.group_mean == pytest.approx(np.mean(rates))
    assert summary.average == pytest.approx(np.mean(rates))  # groups of equal size
    assert summary.adjusted == pytest.approx(np.average(rates, weights=FAST["sizes"]))
    assert list(summary.groups) == ["moon 0", "moon 1", "moon 2", "moon 3"]


def test_a_finished_run_is_loaded_and_not_repeated(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_run(next(finished.glob("four_moons-*")))
    monkeypatch.setattr("umix.methods.umix.UMIX.train", None)
    again = execute(spec(length=2), out=finished)
    assert again.directory == first.directory
    assert again.split_counts == first.split_counts


def test_a_searched_eta_reuses_the_trajectory(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "runs")
    record = execute(spec(length=2, eta=3.0), out=tmp_path / "runs")
    assert record.stages["trajectory"].reused
    assert not record.stages["fit"].reused


def test_kept_training_examples_have_the_prediction_of_the_net_after_its_last_epoch(finished: Path) -> None:
    record = execute(spec(length=2), out=finished)
    kept, _ = read_arrays(record.directory / EXAMPLE_FEATURES, kind="closer")
    train = load_task("four_moons", sizes=FAST["sizes"], eval_size=10).splits["train"]
    index = torch.from_numpy(kept["index"])
    with torch.no_grad():
        expected = load_net(record, select="last")(train.x[index]).argmax(dim=1)
    assert kept["prediction"].tolist() == expected.tolist()
    assert kept["correct"].tolist() == (expected == train.y[index]).tolist()


def test_no_checkpoint_and_no_aside_file_remain_in_a_finished_run(finished: Path) -> None:
    directory = execute(spec(length=2), out=finished).directory
    names = sorted(path.name for path in directory.iterdir())
    expected = {"closer", "confusion", "thresholds", "examples", "trajectory"}
    tables = ["epochs.csv", "predictions-argmax.parquet", "predictions.parquet", "record.json", "training.parquet"]
    assert names == sorted([*(f"{name}.safetensors" for name in expected), *tables, "weights"])


@pytest.mark.parametrize("damage", ["truncated", "foreign", "other"])
def test_a_damaged_record_is_refused_in_one_sentence(finished: Path, tmp_path: Path, damage: str) -> None:
    shutil.copytree(finished, tmp_path / "runs")
    path = next((tmp_path / "runs").glob("four_moons-*/record.json"))
    text = {
        "truncated": path.read_text()[:200],
        "foreign": json.dumps({"accuracy": 1}),
        "other": path.read_text().replace(spec(length=2).key, "0" * 16),
    }[damage]
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        execute(spec(length=2), out=tmp_path / "runs")
    assert "record" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_a_process_that_was_killed_after_its_record_has_left_is_removed(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "runs")
    folder = next((tmp_path / "runs").glob("four_moons-*"))
    before = sorted(path.name for path in folder.iterdir())
    for name in ("checkpoint.safetensors", "failed.json"):
        (folder / name).touch()
    execute(spec(length=2), out=tmp_path / "runs")
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_record_of_other_data_is_refused(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "runs")
    path = next((tmp_path / "runs").glob("four_moons-*/record.json"))
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "fingerprint": "0" * 32}))
    with pytest.raises(UserError, match="was run on other data"):
        execute(spec(length=2), out=tmp_path / "runs")


def test_an_output_folder_that_cannot_be_written_is_refused_before_training(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(UserError, match="Cannot write"):
        execute(spec("erm"), out=tmp_path / "file")


def test_results_do_not_depend_on_global_random_state(tmp_path: Path) -> None:
    torch.manual_seed(1)
    np.random.seed(1)
    first = execute(spec("erm"), out=tmp_path / "a")
    torch.manual_seed(2)
    np.random.seed(2)
    assert execute(spec("erm"), out=tmp_path / "b").split_counts == first.split_counts


@pytest.mark.parametrize("method", ["umix", "jtt", "erm"])
def test_every_rule_that_has_a_score_has_its_weights(tmp_path: Path, method: str) -> None:
    options = {"umix": {"length": 2}, "jtt": {"identification_epochs": 1}, "erm": {}}[method]
    record = load_run(execute(spec(method, **options), out=tmp_path).directory)
    rules = [rule for rule in RULES if record.has(rule)]
    assert ("uncertainty_quintile" in rules) == (method != "erm")
    for rule in rules:
        load_net(record, select=rule)
        assert record.summary(rule).select == rule


def test_rules_that_a_run_cannot_have_are_refused_in_one_sentence(tmp_path: Path) -> None:
    record = execute(spec("erm"), out=tmp_path)
    with pytest.raises(UserError, match="uncertainty_quintile must have the uncertainty of validation examples"):
        record.summary("uncertainty_quintile")
    with pytest.raises(UserError, match="oracle_test must not select a model: it looks at the test split"):
        record.summary("oracle_test")


def test_the_oracle_is_marked_and_never_below_a_rule(finished: Path) -> None:
    record = execute(spec(length=2), out=finished)
    assert record.oracle().select == "oracle_test"
    assert all(record.oracle().worst >= record.summary(rule).worst for rule in RULES)


def test_a_run_whose_kept_weights_were_lost_says_so_and_starts_its_fit_again(tmp_path: Path) -> None:
    still = spec("erm", lr=1e-12)  # every epoch is as good as the first, whose weights are kept

    def stop(epoch: int, val: object) -> None:
        if epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(still, paths=RunPaths(tmp_path, pace=EVERY_EPOCH), on_epoch=stop)
    (weights,) = tmp_path.glob("*/weights/epoch-0000.safetensors")
    weights.unlink()
    with pytest.raises(UserError, match=r"^There is no weights at .*; execute the run again: its fit starts anew\.$"):
        execute(still, out=tmp_path)
    assert execute(still, out=tmp_path).choice().epoch == 0
    assert weights.exists()
