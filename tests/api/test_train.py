"""``umix.train`` as people type it: in memory, in a folder, on their own data."""

from pathlib import Path

import numpy as np
import polars
import pytest
import torch

import umix
from umix.cli import main
from umix.data.groups import Groups
from umix.data.task import Split, Task

FAST = {"fit": {"epochs": 3}, "eta": 3, "length": 2, "pool": "example"}


def people(n: int = 240) -> polars.DataFrame:
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], n)
    rich = rng.random(n) < np.where(sex == "m", 0.6, 0.3)
    return polars.DataFrame(
        {"age": 40 + 10 * rich + 8 * rng.normal(size=n), "sex": sex, "income": np.where(rich, "high", "low")}
    )


@pytest.fixture(scope="module")
def result() -> umix.RunResult:
    task = umix.task_from_table(people(), label="income", groups=["sex"])
    return umix.train(task, "umix", seed=0, **FAST)


def test_a_frame_is_trained_in_memory_and_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    task = umix.task_from_table(people(), label="income", groups=["sex"])
    result = umix.train(task, "erm", fit={"epochs": 1})
    assert result.directory is None
    assert list(tmp_path.iterdir()) == []


def test_a_result_has_rates_predictions_and_weights(result: umix.RunResult) -> None:
    assert set(result.summary().groups) == {"high, f", "high, m", "low, f", "low, m"}
    assert 0 <= result.summary().worst <= result.summary().average <= 1
    predicted = result.predict(people()[:7].drop("income"))
    assert predicted.columns == ["label", "p_high", "p_low"]
    assert len(predicted) == 7
    weights = result.weights()
    assert weights.columns == ["row", "label", "group", "uncertainty", "weight"]
    assert weights["label"].to_list() == people()["income"][weights["row"]].to_list()
    assert weights["weight"].mean() == pytest.approx(1)


def test_a_result_shows_itself_as_a_table(result: umix.RunResult) -> None:
    assert "worst group" in str(result)
    assert "low, sex=f" in result._repr_html_()
    assert result._repr_html_().startswith("<pre")
    assert repr(result).startswith("<RunResult table · umix · seed 0: worst 0.")


def test_a_run_in_memory_has_the_numbers_of_a_run_in_a_folder(result: umix.RunResult, tmp_path: Path) -> None:
    task = umix.task_from_table(people(), label="income", groups=["sex"])
    kept = umix.train(task, "umix", out=tmp_path, **FAST)
    assert kept.record.split_counts == result.record.split_counts
    assert kept.predict(people()).equals(result.predict(people()))
    assert kept.weights().equals(result.weights())
    again = umix.train(task, "umix", out=tmp_path, **FAST)
    assert again.record.key == kept.record.key
    assert again.directory == kept.directory
    assert umix.load_result(kept.directory).predict(people()).equals(kept.predict(people()))
    assert umix.predict(kept.directory, people()).equals(kept.predict(people()))


def test_other_rows_are_another_run(tmp_path: Path) -> None:
    runs = [
        umix.train(
            umix.task_from_table(people(n), label="income", groups=["sex"]), "erm", out=tmp_path, fit={"epochs": 1}
        )
        for n in (200, 240)
    ]
    assert runs[0].record.key != runs[1].record.key


def test_a_task_from_a_file_is_the_run_of_the_command(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    people().write_csv(path)
    task = umix.task_from_table(path, label="income", groups=["sex"])
    ours = umix.train(task, "erm", out=tmp_path / "runs", fit={"epochs": 2}, seed=1)
    words = ["--label", "income", "--groups", "sex", "--set", "fit.epochs=2", "--seed", "1", "--json", "--quiet"]
    assert main(["run", str(path), "erm", *words, "--out", str(tmp_path / "runs")]) == 0
    assert [folder.name for folder in (tmp_path / "runs").glob("people-*")] == [ours.directory.name]


def test_a_path_takes_its_roles_as_settings(tmp_path: Path) -> None:
    people().write_csv(tmp_path / "people.csv")
    result = umix.train(tmp_path / "people.csv", "erm", label="income", groups=["sex"], fit={"epochs": 1})
    assert result.record.groups == ["high, f", "high, m", "low, f", "low, m"]


def test_embedded_tasks_train_by_name_and_when_loaded() -> None:
    named = umix.train("four_moons", "erm", fit={"epochs": 1})
    loaded = umix.train(umix.load_task("four_moons"), "erm", fit={"epochs": 1})
    assert named.record.key == loaded.record.key
    assert named.record.split_counts == loaded.record.split_counts


def test_arrays_and_tasks_of_tensors_train() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    x = rng.normal(size=(120, 4)) + y[:, None]
    arrays = umix.task_from_arrays(x, y, groups=rng.choice(["a", "b"], 120))
    assert len(umix.train(arrays, "group_dro", fit={"epochs": 2}).summary().groups) == 4
    split = Split(torch.tensor(x).float(), torch.tensor(y), Groups(torch.ones(120, 1, dtype=torch.bool), ("all",)))
    task = Task("mine", {"train": split, "val": split, "test": split}, classes=("no", "yes"))
    result = umix.train(task, "erm", net={"name": "mlp", "hidden": [8]}, fit={"epochs": 2})
    assert result.net().features(split.x[:3]).shape == (3, 8)
    with pytest.raises(umix.UserError, match=r"result\.net\(\)"):
        result.predict(x)


def test_what_is_wrong_is_said_before_training() -> None:
    task = umix.task_from_table(people(), label="income")
    with pytest.raises(umix.UserError, match="did you mean 'umix'"):
        umix.train(task, "umx")
    with pytest.raises(umix.UserError, match="group_dro needs training groups"):
        umix.train(task, "group_dro")
    with pytest.raises(umix.UserError, match="Unknown setting"):
        umix.train(task, "umix", etta=3)
    with pytest.raises(umix.UserError, match="has no file to load it from"):
        umix.execute(umix.RunSpec(task=f"memory:table/people@{32 * '0'}", method="erm"))


def test_weights_of_a_method_without_any_are_refused() -> None:
    result = umix.train("four_moons", "erm", fit={"epochs": 1})
    with pytest.raises(umix.UserError, match="erm keeps none"):
        result.weights()


def test_a_given_eta_is_kept_whatever_it_costs() -> None:
    rng = np.random.default_rng(0)
    noise = polars.DataFrame({"x": rng.normal(size=400), "y": rng.choice(["no", "yes"], 400)})
    task = umix.task_from_table(noise, label="y")
    result = umix.train(task, "umix", eta=30, fit={"epochs": 3})
    assert result.record.choices["eta"] == 30
    assert result.weights()["weight"].n_unique() > 1
    assert "Chosen: " in str(result)


def test_a_result_prints_its_warnings() -> None:
    task = umix.task_from_table(people(60), label="income", groups=["sex"])
    result = umix.train(task, "erm", fit={"epochs": 1})
    assert any("fewer than 30 rows" in warning for warning in result.record.warnings)
    assert "warning: " in str(result)


def test_columns_called_like_those_of_the_frame_stay_the_users(tmp_path: Path) -> None:
    frame = people().rename({"sex": "group"})
    result = umix.train(umix.task_from_table(frame, label="income", groups=["group"]), "erm", fit={"epochs": 1})
    assert set(result.frame()["group (group)"]) == {"f", "m"}
    assert result.metrics("recall:high", by="group")["group"].to_list()[0] == "all"
    assert set(result.metrics("recall:high", by="group")["group"]) == {"all", "f", "m"}
    assert len(result.metrics("equalized_odds_difference:high")) == 1
    with pytest.raises(umix.UserError, match="Unknown group column of this run 'race'"):
        result.metrics(by=["race"])


def test_a_task_that_was_changed_in_place_is_another_run(tmp_path: Path) -> None:
    x, y = torch.randn(60, 3), torch.arange(60) % 2
    split = Split(x, y, Groups(torch.ones(60, 1, dtype=torch.bool), ("all",)))
    task = Task("mine", {"train": split, "val": split, "test": split}, classes=("no", "yes"))
    first = umix.train(task, "erm", fit={"epochs": 1}, out=tmp_path)
    x += 5
    assert umix.train(task, "erm", fit={"epochs": 1}, out=tmp_path).directory != first.directory


def test_what_is_no_task_is_refused_in_words() -> None:
    with pytest.raises(umix.UserError, match=r"got DataFrame; make one of a frame .* with task_from_table"):
        umix.train(people(), "erm")
    assert repr(umix.load_task("four_moons")).startswith("<Task four_moons: train ")


def test_values_that_cannot_be_read_are_said_when_predicting(result: umix.RunResult) -> None:
    new = people()[:3].drop("income").with_columns(age=polars.Series(["abc", "40", "41"]))
    with pytest.warns(UserWarning, match="treated as missing"):
        assert len(result.predict(new)) == 3


def test_one_task_of_a_table_is_for_nets_and_trees(tmp_path: Path) -> None:
    task = umix.task_from_table(people(60), label="income", groups=["sex"])
    net = umix.train(task, "erm", out=tmp_path, fit={"epochs": 1})
    trees = umix.train(task, "erm", out=tmp_path, net="trees", fit={"epochs": 1})
    assert net.record.input_categories == []
    assert trees.record.input_categories == list(task.categories)
    assert net.record.fingerprint == trees.record.fingerprint == task.fingerprint
    for result in (net, trees):
        assert len(umix.predict(result.directory, people(5))) == 5


def test_settings_are_taken_as_run_study_takes_them() -> None:
    task = umix.task_from_table(people(), label="income", groups=["sex"])
    by_name = umix.train(task, "umix", **FAST).record
    in_one = umix.train(task, "umix", settings={"fit": {"epochs": 3}, "eta": 3, "length": 2, "pool": "example"}).record
    both = umix.train(task, "umix", settings={"fit.epochs": 9, "eta": 3, "length": 2, "pool": "example"}, epochs=3)
    flat = umix.train(task, "umix", settings={**FAST, "eta": 7}, eta=3).record
    assert by_name.key == in_one.key == flat.key
    assert both.record.key == by_name.key


@pytest.mark.parametrize("settings", ["eta=3", [("eta", 3)]])
def test_settings_that_are_no_dict_are_refused(settings: object) -> None:
    with pytest.raises(ValueError, match=r"settings must be a dict of names and values, such as .*, got (str|list)\.$"):
        umix.train(umix.load_task("four_moons"), "erm", settings=settings)
