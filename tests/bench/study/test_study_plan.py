"""The runs of a study, and their state on disk."""

from pathlib import Path

import pytest
import torch

from umix.bench.runs.execute import execute
from umix.bench.runs.failure import Failure
from umix.bench.runs.lock import run_lock
from umix.bench.spec.run_spec import RunSpec
from umix.bench.study.study import Study
from umix.bench.study.study_plan import StudyGrid, make_grid, run_state
from umix.errors import UserError

FAST = {"epochs": 3, "hidden": [8], "sizes": [20, 4, 4, 20], "eval_size": 5}


def grid(*methods: object, **changes: object) -> StudyGrid:
    return make_grid(
        Study(**{"tasks": ["four_moons"], "methods": methods, "seeds": (0, 1), "settings": FAST, **changes})
    )


def umix(label: str, **settings: object) -> dict:
    return {"name": "umix", "label": label, "settings": {"length": 2, **settings}}


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "people.csv"
    rows = [f"{i % 7},{'f' if i % 3 else 'm'},{'yes' if i % 2 else 'no'}" for i in range(60)]
    path.write_text("\n".join(["age,sex,paid", *rows]))
    return str(path)


def test_a_grid_is_tasks_times_methods_times_seeds(table: str) -> None:
    tasks = [{"name": "four_moons", "settings": FAST}, {"name": table, "settings": {"task.label": "paid"}}]
    made = grid("erm", "jtt", tasks=tasks, settings={"epochs": 2})
    paths = [(entry.task, entry.label, entry.spec.seed) for entry in made.entries]
    assert paths == [
        (task, label, seed) for task in ("four_moons", "people.csv") for label in ("erm", "jtt") for seed in (0, 1)
    ]
    assert {entry.spec.plan.fit.epochs for entry in made.entries if entry.task == "people.csv"} == {2}


def test_entries_whose_settings_come_to_the_same_are_one_run() -> None:
    made = grid(umix("UMIX"), umix("UMIX, spelled out", **{"umix.c": 1.0}))
    assert len(made.entries) == 4
    assert len(made.runs) == 2


def test_settings_of_the_method_go_over_those_of_the_task_and_the_study() -> None:
    tasks = [{"name": "four_moons", "settings": {"fit.epochs": 2, "batch_size": 4}}]
    methods = [{"name": "erm", "settings": {"batch_size": 2}}]
    fit = grid(*methods, tasks=tasks, settings={**FAST, "fit.lr": 0.5}).entries[0].spec.plan.fit
    assert (fit.epochs, fit.batch_size, fit.lr) == (2, 2, 0.5)


def test_every_method_of_a_study_trains_the_same_learner_unless_one_is_named(table: str) -> None:
    def nets(*methods: object, **settings: object) -> dict[str, str]:
        made = grid(*methods, tasks=[table], settings={"task.label": "paid", **settings})
        return {entry.label: entry.spec.plan.net_name for entry in made.entries}

    assert RunSpec(task=table, method="best", settings={"task.label": "paid"}).plan.net_name == "auto"  # a run alone
    assert nets("erm", "umix", "best") == {"erm": "mlp", "umix": "mlp", "best": "mlp"}
    assert nets("erm", "best", net="trees") == {"erm": "trees", "best": "trees"}
    assert nets("erm", "best", net="auto") == {"erm": "auto", "best": "auto"}
    assert nets("erm", {"name": "best", "settings": {"net.name": "auto"}}) == {"erm": "mlp", "best": "auto"}
    assert nets("erm", {"name": "best", "settings": {"net.among": ["mlp"]}}) == {"erm": "mlp", "best": "auto"}
    made = grid("best", tasks=[table], settings={"task.label": "paid", "net.hidden": [4]})
    assert made.entries[0].spec.plan.net.hidden == (4,)


def test_what_a_preset_file_says_of_a_methods_net_is_asked_for(table: str, tmp_path: Path) -> None:
    preset = tmp_path / "mine.toml"
    preset.write_text('[mine.net]\nname = "mlp"\n[mine.best.net]\nname = "auto"\n')
    made = grid("erm", "best", tasks=[table], settings={"task.label": "paid"}, preset=str(preset))
    assert [entry.spec.plan.net_name for entry in made.entries[::2]] == ["mlp", "auto"]


def test_planning_trains_nothing_and_leaves_the_global_generator_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("umix.training.context.fit", None)
    before = torch.get_rng_state()
    assert len(grid(umix("umix"), "jtt", "dfr").runs) == 6
    assert torch.equal(before, torch.get_rng_state())
    assert not list(tmp_path.iterdir())


def test_a_method_that_needs_groups_is_refused_where_there_are_none_or_left_out(table: str) -> None:
    task = {"name": table, "settings": {"task.label": "paid"}}
    with pytest.raises(UserError, match=r"group_dro cannot run on people\.csv: .* needs training groups, .* groups="):
        grid("erm", "group_dro", tasks=[task], settings={})
    made = grid("erm", "group_dro", "dfr", tasks=[task], settings={}, skip_impossible=True)
    assert {entry.label for entry in made.entries} == {"erm"}
    assert [note.partition(" is left out")[0] for note in made.skipped] == [
        "group_dro on people.csv",
        "dfr on people.csv",
    ]
    with pytest.raises(UserError, match="none of its methods can run"):
        grid("group_dro", tasks=[task], settings={}, skip_impossible=True)


def test_wrong_names_and_values_are_refused_before_anything_runs() -> None:
    with pytest.raises(UserError, match="did you mean 'umix'"):
        grid("erm", "umx")
    with pytest.raises(UserError, match=r"umix\.sigma"):
        grid("erm", umix("umix", sigma=7))


def test_the_state_of_a_run_is_read_from_disk(tmp_path: Path) -> None:
    entry = grid("erm").entries[0]
    assert run_state(tmp_path, entry.spec) == "to run"
    directory = tmp_path / entry.spec.directory_name
    directory.mkdir()
    (directory / "checkpoint.safetensors").touch()
    assert run_state(tmp_path, entry.spec) == "partly"
    (directory / "checkpoint.safetensors").unlink()
    failure = Failure.of(ValueError("no"), task="four_moons", method="erm", seed=0, key=entry.key)
    failure.save(tmp_path, entry.spec.directory_name)
    assert run_state(tmp_path, entry.spec) == "failed"
    with run_lock(tmp_path, entry.spec.directory_name):
        assert run_state(tmp_path, entry.spec) == "running"
    execute(entry.spec, out=tmp_path)
    assert run_state(tmp_path, entry.spec) == "done"
