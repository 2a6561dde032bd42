"""Files that name code: it is imported only if the user types its name or says that it is trusted."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars
import pytest

import umix
from umix import RunSpec, UserError, load_study
from umix.api.study import plan_study
from umix.bench.spec.code_in_files import refuse_code
from umix.cli import main
from umix.models.registry import names_code

TINY = {"task.sizes": [24, 8, 8, 24], "task.eval_size": 8, "fit.epochs": 1}
MODULE = """
import pathlib
from torch import nn

pathlib.Path("imported").touch()


def make(example, n_classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(example.numel(), 4)), nn.Linear(4, n_classes)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, with a module that leaves a file when it is imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "canary_net", raising=False)
    (tmp_path / "canary_net.py").write_text(MODULE)
    yield tmp_path
    sys.modules.pop("canary_net", None)


def imported() -> bool:
    return Path("imported").exists()


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("mynets:small", True),
        ("my.nets:small", True),
        ("mlp:small", True),  # no net of a provider, so it is looked up as a module
        ("own:make", True),
        ("estimator:make", True),
        ("sklearn.ensemble:RandomForestClassifier", True),
        ("os:system", True),
        ("mlp", False),
        ("hf:folder", False),
        ("hf:a/b", False),
        ("timm:resnet50.a1_in1k", False),
        ("monai:DenseNet121", False),
        ("", False),
        (":", False),
        ("a:b:c", False),
    ],
)
def test_code_is_told_from_nets_by_its_name_alone(name: str, code: bool) -> None:
    assert names_code(name) == code


@pytest.mark.parametrize(
    "text",
    [
        '[a.net]\nname = "canary_net:make"',
        '[a.erm.net]\nname = "canary_net:make"',
        '[a.net]\nname = "auto"\namong = ["mlp", "canary_net:make"]',
    ],
    ids=["net", "net of a method", "one of several learners"],
)
def test_a_preset_file_that_names_code_is_refused_before_anything_is_imported(folder: Path, text: str) -> None:
    (folder / "preset.toml").write_text(text)
    with pytest.raises(
        UserError, match=r"preset\.toml names the net canary_net:make, which is code .* trust_code=True"
    ):
        RunSpec(task="four_moons", method="erm", preset="preset.toml")
    assert not imported()
    assert RunSpec(task="four_moons", method="erm", preset="preset.toml", trust_code=True).plan.net_name


def test_a_run_has_one_key_whether_its_code_was_typed_or_trusted(folder: Path) -> None:
    (folder / "preset.toml").write_text('[a.net]\nname = "canary_net:make"')
    trusted = RunSpec(task="four_moons", method="erm", preset="preset.toml", settings=TINY, trust_code=True)
    typed = RunSpec(
        task="four_moons",
        method="erm",
        preset="preset.toml",
        settings=TINY | {"net": "canary_net:make"},
        trust_code=True,
    )
    assert trusted.key == typed.key
    assert trusted.changed(TINY, seed=3).plan.net_name == "canary_net:make"  # of a search, or of a learner


@pytest.mark.parametrize(
    "settings",
    [
        'settings = {net = "canary_net:make"}',
        'settings = {"net.name" = "canary_net:make"}',
        'settings = {net = {name = "canary_net:make"}}',
        'settings = {net = "auto", among = ["canary_net:make"]}',
        'settings = {net = {name = "auto", among = ["mlp", "canary_net:make"]}}',
    ],
)
@pytest.mark.parametrize("owner", ["study", "task", "method"])
def test_a_study_that_names_code_is_refused_wherever_it_does(folder: Path, owner: str, settings: str) -> None:
    lines = {
        "study": f'{settings}\ntasks = ["four_moons"]\nmethods = ["erm"]',
        "task": f'methods = ["erm"]\n[[tasks]]\nname = "four_moons"\n{settings}',
        "method": f'tasks = ["four_moons"]\n[[methods]]\nname = "erm"\n{settings}',
    }
    (folder / "study.toml").write_text(lines[owner])
    with pytest.raises(UserError, match=r"The study study\.toml names the net canary_net:make, which is code"):
        load_study("study.toml")
    assert not imported()
    assert load_study("study.toml", trust_code=True).tasks


def test_what_looks_like_code_but_names_no_net_is_a_text_like_any_other() -> None:
    content = {
        "tasks": [{"name": "a:b", "settings": {"task": {"label": "c:d", "groups": ["e:f"]}}}],
        "net": {"model": "g:h"},
    }
    refuse_code(content, "The study", trust_code=False)


def test_a_preset_file_that_a_study_names_is_no_more_trusted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "preset.toml").write_text('[a.net]\nname = "canary_net:make"')
    (folder / "study.toml").write_text('tasks = ["four_moons"]\nmethods = ["erm"]\npreset = "preset.toml"\nseeds = [0]')
    assert main(["bench", "--file", "study.toml", "--plan"]) == 2
    assert "give --trust-code, or name it yourself with --net canary_net:make." in " ".join(
        capsys.readouterr().err.split()
    )
    assert not imported()
    with pytest.raises(UserError, match="which is code"):
        plan_study(load_study("study.toml"))
    assert main(["bench", "--file", "study.toml", "--plan", "--trust-code"]) == 0
    assert imported()


def test_a_net_that_is_typed_beside_a_file_is_imported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "study.toml").write_text('tasks = ["four_moons"]\nmethods = ["erm"]\nseeds = [0]')
    assert main(["bench", "--file", "study.toml", "--plan", "--net", "canary_net:make"]) == 0
    assert imported()


def test_a_search_refuses_the_code_of_a_preset(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "preset.toml").write_text('[a.net]\nname = "canary_net:make"')
    assert main(["tune", "four_moons", "umix", "--trials", "1", "--preset", "preset.toml"]) == 2
    assert not imported()


@pytest.fixture
def people(folder: Path) -> Path:
    """A table of 60 rows."""
    rows = np.random.default_rng(0).normal(size=(60, 2))
    polars.DataFrame({"a": rows[:, 0], "b": rows[:, 1], "y": (rows[:, 0] > 0).astype(int)}).write_csv("people.csv")
    return folder


def test_a_run_whose_record_names_code_predicts_if_it_is_trusted(
    people: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = umix.train("people.csv", "erm", label="y", net="canary_net:make", fit={"epochs": 1}, out="runs")
    expected = made.predict("people.csv")  # its net was typed
    run = str(made.directory)
    sys.modules.pop("canary_net", None)
    Path("imported").unlink()
    for command in (["predict", run, "people.csv", "-o", "-"], ["export", run, "-o", "model.safetensors"]):
        assert main(command) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert "names the net canary_net:make, which is code" in said
        assert said.endswith("if you trust it, give --trust-code.")
    for command in (["table", "runs"], ["weights", run, "-o", "weights.csv"]):
        main(command)
    with pytest.raises(UserError, match="which is code"):
        umix.load_result(run).predict("people.csv")
    assert not imported()
    assert main(["predict", run, "people.csv", "-o", "new.parquet", "--trust-code"]) == 0
    assert imported()
    assert polars.read_parquet("new.parquet").equals(expected)
    assert umix.predict(run, "people.csv", trust_code=True).equals(expected)
    assert umix.export(run, "model.safetensors", trust_code=True)


def test_a_record_that_was_put_in_the_place_of_a_run_names_its_code_in_vain(people: Path) -> None:
    options = {"label": "y", "net": "linear", "fit": {"epochs": 1}, "out": "runs"}
    path = umix.train("people.csv", "erm", **options).directory / "record.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"net": "canary_net:make"}))
    with pytest.raises(UserError, match="which is code"):
        umix.train("people.csv", "erm", **options).predict("people.csv")
    assert not imported()
