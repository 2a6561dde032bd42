"""``umix tune`` as people and programs use it."""

import json
import sys
from pathlib import Path

import pytest

from umix.bench.spec.run_spec import RunSpec
from umix.cli import main

SMALL = [f"--set={s}" for s in ("epochs=2", "task.sizes=[30,6,6,30]", "task.eval_size=10", "net.hidden=[4]")]


@pytest.mark.system
def test_tune_then_run_with_the_preset_it_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["tune", "four_moons", "focal", "--trials", "3", *SMALL, "--quiet", "--out", str(tmp_path)]
    assert main([*command, "--range", "fit.lr=0.01:0.1:log", "--choices", "class_balance=none", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert sorted(found["settings"]) == ["fit.lr", "focal.class_balance", "focal.gamma"]
    assert len(found["trials"]) == 3
    assert all(0.01 <= trial["settings"]["fit.lr"] <= 0.1 for trial in found["trials"])
    assert main([*command, "--range", "fit.lr=0.01:0.1:log", "--choices", "class_balance=none"]) == 0
    assert "3 trials ended, 0 cut short, 0 failed" in " ".join(capsys.readouterr().out.split())
    spec = RunSpec(task="four_moons", method="focal", preset=found["preset"])
    assert spec.plan.fit.lr == found["settings"]["fit.lr"]
    assert main(["run", "four_moons", "focal", "--preset", found["preset"], "--quiet", "--out", str(tmp_path)]) == 0
    assert (tmp_path / spec.directory_name / "record.json").exists()


@pytest.mark.system
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--trials", "0"], "--trials must be at least 1, got 0."),
        (["--seeds", "x"], "Seeds must be a range as 0:5 or a list as 0,1,2"),
        (["--range", "eta"], "--range must be given key=low:high"),
        (["--range", "eta=1:3", "--choices", "eta=1,2"], "Every setting must be searched in one place"),
        (["--name", ""], "--name must be letters"),
        (["--choices", "mixing=stir"], "umix.mixing must be one of"),
    ],
)
def test_wrong_flags_are_one_sentence(
    flags: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tune", "four_moons", "umix", "--out", str(tmp_path / "out"), *flags]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.system
def test_seeds_may_be_ranges_and_lists_as_in_bench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["tune", "four_moons", "focal", "--trials", "1", "--seeds", "0:1,7", *SMALL, "-q", "--out", str(tmp_path)]
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["seeds"] == [0, 7]
    assert main(command) == 0
    assert "1 trial ended, 0 cut short" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "command", [["tune", "four_moons", "umix"], ["bench", "four_moons", "--methods", "umix", "--tune", "2"]]
)
def test_without_optuna_a_search_says_what_to_install_and_writes_nothing(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert main([*command, "--out", str(tmp_path)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "A search needs Optuna, which is not installed: pip install 'umix[search]'." in said
    assert not list(tmp_path.iterdir())
