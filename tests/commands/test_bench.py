"""``umix bench``, called as people call it."""

import contextlib
import io
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from rich.console import Console

from umix.bench.runs.lock import LOCKS, is_locked
from umix.cli import main

FAST = [f"--set={setting}" for setting in ("epochs=2", "sizes=[40,8,8,40]", "eval_size=10", "hidden=[8]")]
SLOW = [f"--set={setting}" for setting in ("epochs=4000", "batch_size=1", "sizes=[40,8,8,40]", "eval_size=10")]
UMIX = ["bench", "four_moons", "--methods", "erm,umix", "--set=umix.length=2", *FAST]
BENCH = [*UMIX, "--seeds", "0:2"]


def bench_json(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict:
    assert main([*arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_a_study_is_planned_run_and_compared_and_not_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*BENCH, "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    for expected in ("Plan: 4 runs, seeds 0, 1", "[4/4]", "four_moons · umix · seed 1: worst"):
        assert expected in shown.err
    for expected in ("worst group", "differences to erm", "Records:", "umix table"):
        assert expected in shown.out
    written = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/record.json")}
    assert len(written) == 4
    assert main([*BENCH, "--out", str(tmp_path)]) == 0
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/record.json")} == written
    assert capsys.readouterr().out == shown.out


def test_the_plan_says_what_is_done_and_to_run_and_runs_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = bench_json(capsys, *BENCH, "--plan", "--out", str(tmp_path / "runs"))
    assert {run["state"] for run in made["plan"]} == {"to run"}
    assert not (tmp_path / "runs").exists()
    bench_json(capsys, *UMIX, "--seeds=0", "--out", str(tmp_path / "runs"))
    made = bench_json(capsys, *BENCH, "--set=umix.eta=3", "--plan", "--out", str(tmp_path / "runs"))
    states = {(run["method"], run["seed"]): run["state"] for run in made["plan"]}
    assert states == {("erm", 0): "done", ("erm", 1): "to run", ("umix", 0): "to run", ("umix", 1): "to run"}


def test_a_failed_run_is_shown_the_rest_go_on_and_it_is_tried_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object) -> None:
        raise RuntimeError("no [luck]")

    out = ["--out", str(tmp_path)]
    with monkeypatch.context() as patch:
        patch.setattr("umix.methods.umix.UMIX.train", broken)
        assert main([*BENCH, *out]) == 1
        shown = capsys.readouterr().out
        assert "failed" in next(line for line in shown.splitlines() if line.strip(" │").startswith("umix"))
        assert "failed: four_moons · umix · seed 0: RuntimeError: no [luck]" in shown
        found = bench_json(capsys, *BENCH, *out, code=1)
        assert [(failure["method"], failure["seed"]) for failure in found["failed"]] == [("umix", 0), ("umix", 1)]
        assert [run["label"] for run in found["runs"]] == ["erm", "erm", "erm + threshold", "erm + threshold"]
        assert [run["summary"]["threshold_mode"] for run in found["runs"]] == ["off", "off", "tuned", "tuned"]
    assert main(["table", str(tmp_path)]) == 0
    assert "failed: four_moons · umix · seed 1: RuntimeError: no [luck]" in capsys.readouterr().err
    made = bench_json(capsys, *BENCH, *out, "--plan")
    assert [run["state"] for run in made["plan"]] == ["done", "done", "failed", "failed"]
    assert bench_json(capsys, *BENCH, *out)["failed"] == []
    assert not list(tmp_path.rglob("failed.json"))


@pytest.mark.parametrize(("seeds", "heads"), [("0:2", ["seed 0", "seed 1"]), ("0:13", ["ended", "worst so far"])])
def test_a_terminal_shows_a_live_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: str, heads: list[str]
) -> None:
    drawn = io.StringIO()
    monkeypatch.setattr(
        "umix.commands.study_output.ERR", Console(file=drawn, force_terminal=True, width=120, color_system=None)
    )
    assert main(["bench", "four_moons", "--methods=erm", *FAST, "--seeds", seeds, "--out", str(tmp_path)]) == 0
    runs = len(list(tmp_path.glob("*-erm-*")))
    for expected in (
        "four_moons",
        *heads,
        f"0 of {runs} runs ended",
        f"{runs} of {runs} runs ended",
    ):
        assert expected in drawn.getvalue()
    assert "[1/" not in drawn.getvalue()  # lines are for where nothing can be drawn over


def test_a_study_in_a_file_is_that_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "study.toml"
    file.write_text(
        'tasks = ["four_moons"]\nseeds = "0:2"\n'
        "settings = { epochs = 2, sizes = [40, 8, 8, 40], eval_size = 10, hidden = [8] }\n"
        '[[methods]]\nname = "erm"\n[[methods]]\nname = "umix"\nlabel = "UMIX"\nsettings = { length = 2 }\n'
    )
    there = ["--plan", "--out", str(tmp_path)]
    one, other = (
        bench_json(capsys, *BENCH, *there)["plan"],
        bench_json(capsys, "bench", "--file", str(file), *there)["plan"],
    )
    assert [run["key"] for run in one] == [run["key"] for run in other]
    assert {run["label"] for run in other} == {"erm", "UMIX"}
    fewer = bench_json(capsys, "bench", "--file", str(file), "--seeds=4", *there)["plan"]
    assert {run["seed"] for run in fewer} == {4}


def test_flags_of_a_table_are_for_tables_and_impossible_runs_are_left_out_if_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "people.csv"
    rows = [f"{i % 7},{'f' if i % 3 else 'm'},{'yes' if i % 2 else 'no'}" for i in range(60)]
    path.write_text("\n".join(["age,sex,paid", *rows]))
    study = ["bench", "four_moons", str(path), "--methods", "erm,group_dro", "--label", "paid", "--plan"]
    study += ["--out", str(tmp_path / "runs"), "--seeds", "0"]
    assert main(study) == 2
    assert "group_dro cannot run on people.csv" in capsys.readouterr().err
    made = bench_json(capsys, *study, "--skip-impossible")
    assert [(run["task"], run["method"]) for run in made["plan"]] == [
        ("four_moons", "erm"),
        ("four_moons", "group_dro"),
        ("people.csv", "erm"),
    ]
    assert len(made["skipped"]) == 1
    assert len(bench_json(capsys, *study, "--groups", "sex")["plan"]) == 4


SEARCH = ["tune", "four_moons", "umix", "--trials", "1", *FAST]


@pytest.mark.parametrize(
    "command", [BENCH, pytest.param(SEARCH, marks=pytest.mark.system)], ids=lambda command: command[0]
)
def test_a_folder_that_cannot_be_written_is_said_before_anything_runs(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert main([*command, "--out", str(tmp_path / "file")]) == 2
    shown = capsys.readouterr()
    assert "Cannot write" in shown.err
    assert shown.out == ""


def test_what_is_wrong_in_a_study_file_is_said_with_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = tmp_path / "study.toml"
    study.write_text('tasks = ["four_moons"]\nmethods = ["erm"]\nsettings = { fit.epoch = 2 }\n', encoding="utf-8")
    assert main(["bench", "--file", str(study), "--plan"]) == 2
    assert (
        "study.toml: Unknown setting of erm 'fit.epoch'; did you mean 'fit.epochs'?"
        in capsys.readouterr().err.replace("\n", " ")
    )


@pytest.mark.system
def test_every_run_of_a_study_can_be_logged(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    assert main([*BENCH, "-q", "--log", "tensorboard", "--out", str(tmp_path)]) == 0
    assert len(list(tmp_path.glob("*/tensorboard/*tfevents*"))) == 4


def test_texts_of_ones_own_and_another_net_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"word{i % 7} {'good' if i % 2 else 'bad'},{i % 2},{'ab'[i // 2 % 2]}" for i in range(120)]
    (tmp_path / "reviews.csv").write_text("\n".join(["review,stars,place", *rows]) + "\n", encoding="utf-8")
    study = ["bench", str(tmp_path / "reviews.csv"), "--methods=erm,group_dro", "--seeds=0", "--set=epochs=1"]
    data = ["--text=review", "--label=stars", "--groups=place", "--net=linear"]
    assert main([*study, *data, "-q", "--out", str(tmp_path / "runs")]) == 0
    records = [json.loads(path.read_text()) for path in (tmp_path / "runs").glob("*/record.json")]
    assert [(record["plan"]["task"]["name"], record["plan"]["net"]["name"]) for record in records] == [
        ("text", "linear")
    ] * 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["four_moons", "--methods", "erm", "--net", "mlp", "--freeze"], "--freeze must be used with a pretrained net"),
        (["four_moons"], "A study must have tasks and methods"),
        (["four_moons", "--methods", "erm,umx"], "did you mean 'umix'?"),
        (["four_moons", "--methods", "erm", "--set", "umix.eta=2"], "must be about a method of the study (erm)"),
        (["four_moons", "--methods", "erm,umix", "--set", "eta=2"], "Settings of one method are given as METHOD.key"),
        (["four_moons", "--methods", "erm", "--label", "y"], "--label must be about data of your own"),
        (["four_moons", "--methods", "erm", "--seeds", "x"], "Seeds must be a range"),
        (["four_moons", "--methods", "erm", "--select", "best"], "Unknown selection rule 'best'"),
        (["four_moons", "--methods", "erm", "--workers", "0"], "--workers must be at least 1, got 0"),
        (["four_moons", "--methods", "erm", "--workers", "0", "--plan"], "--workers must be at least 1, got 0"),
        (
            ["four_moons", "--methods", "erm", "--workers", "2", "--threads", "0"],
            "--threads must be at least 1, got 0",
        ),
        (["four_moons", "--methods", "erm", "--workers", "2", "--ray", "auto"], "by --workers or by --ray"),
        (
            ["four_moons", "--methods", "erm", "--threads", "2"],
            "--threads must go with --workers, got --threads 2 alone",
        ),
        (["four_moons", "--methods", "erm", "--gpus", "0.5"], "--gpus must go with --ray"),
        (["four_moons", "--methods", "erm", "--root", "x"], "--root must go with a task that has files in a folder"),
        (["four_moons", "--methods", "erm", "--mlflow-uri", "x"], "--mlflow-uri must go with --log mlflow"),
        (["four_moons", "--methods", "erm,umix", "--set", "umx.eta=1"], "did you mean 'umix'?"),
        (["four_moons", "--methods", "erm", "--file", "study.toml"], "must be in the file"),
        (["--file", "nowhere.toml"], "There is no study at nowhere.toml"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert main(["bench", *arguments, "--out", str(tmp_path)]) == 2
    shown = capsys.readouterr()
    assert sentence in shown.err
    assert shown.out == ""
    assert not list(tmp_path.iterdir())


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "umix study"


def workers_of(study: BaseProcess) -> list[int]:
    """The processes of the session of ``study``, without itself and its fork server."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent, _, session = path.read_text().rpartition(")")[2].split()[:4]
            if int(session) == study.pid and int(parent) != study.pid and state != "Z":
                found.append(int(path.parent.name))
    return [pid for pid in found if pid != study.pid]


def test_an_interrupted_study_leaves_no_process_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], start_umix: Callable[..., BaseProcess]
) -> None:
    out = tmp_path / "runs"
    study = ["bench", "four_moons", "--methods=erm", "--seeds=0:2", *SLOW, "--out", str(out)]
    process = start_umix(*study, "--workers", "2", "--quiet", output=tmp_path / "said")
    said = tmp_path / "said.err"
    while not list(out.glob("four_moons-*/checkpoint.safetensors")):
        assert process.is_alive(), said.read_text()
        time.sleep(0.01)
    if sys.platform == "linux":
        assert len(workers_of(process)) == 2
    os.killpg(process.pid, signal.SIGINT)  # what Ctrl-C does
    process.join()
    while workers_of(process):  # killed with their parent
        time.sleep(0.005)
    assert process.exitcode == 130
    assert said.read_text() == (
        "umix: interrupted; what is finished is kept, and the same command goes on from there.\n"
    )
    assert not list(out.rglob("failed.json"))  # no run has failed
    assert not any(is_locked(out, path.stem) for path in (out / LOCKS).iterdir())
    made = bench_json(capsys, *study, "--plan")
    assert "partly" in [run["state"] for run in made["plan"]]


def test_one_run_and_one_seed_are_no_plural(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["bench", "four_moons", "--methods", "erm", "--seeds", "3", *FAST, "--dry-run", "-o", str(tmp_path)]) == 0
    )
    assert "Plan: 1 run, seed 3" in "".join(capsys.readouterr())
