"""Ctrl-C, SIGTERM and closed pipes: one line or none, an exit code that says it, nothing left running."""

import os
import signal
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from umix.cli import main

SLOW = [f"--set={setting}" for setting in ("epochs=4000", "batch_size=1", "sizes=[60,4,4,60]", "eval_size=5")]
GOES_ON = "what is finished is kept, and the same command goes on from there."
PROGRAM = "import sys; from umix.cli import main; sys.exit(main(arguments))"
#: Before that: a standard input that nobody writes to, a standard output that nobody reads, one on a full disk.
SILENT = "read, write = os.pipe(); os.dup2(read, 0); import sys; sys.stdin = open(0); "
UNREAD = "read, write = os.pipe(); os.close(read); os.dup2(write, 1); "
FULL = "os.dup2(os.open('/dev/full', os.O_WRONLY), 1); "
Start = Callable[..., BaseProcess]


@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_a_run_ends_with_one_line_and_keeps_its_checkpoint(
    tmp_path: Path, start_program: Start, number: int, code: int, word: str
) -> None:
    command = ["run", "four_moons", "erm", "--quiet", *SLOW, "--out", str(tmp_path / "runs")]
    process = start_program(PROGRAM, output=tmp_path / "said", arguments=command)
    while not list(tmp_path.glob("runs/four_moons-*/checkpoint.safetensors")):
        assert process.is_alive()
        time.sleep(0.01)
    os.kill(process.pid or 0, number)
    process.join()
    assert process.exitcode == code
    assert (tmp_path / "said.err").read_text() == f"umix: {word}; {GOES_ON}\n"
    names = {path.name for path in tmp_path.glob("runs/four_moons-*/*")}
    assert "checkpoint.safetensors" in names
    assert not any(name.endswith(".aside") for name in names)


def test_a_search_ends_with_one_line_and_its_trial_is_the_next(tmp_path: Path, start_program: Start) -> None:
    optuna = pytest.importorskip("optuna")
    command = ["tune", "four_moons", "erm", "--range=lr=0.01:0.1", "--quiet", *SLOW, "--out", str(tmp_path / "runs")]
    process = start_program(PROGRAM, output=tmp_path / "said", arguments=command)
    while not list(tmp_path.glob("runs/tune-*/four_moons-*/checkpoint.safetensors")):
        assert process.is_alive()
        time.sleep(0.01)
    os.kill(process.pid or 0, signal.SIGINT)
    process.join()
    assert process.exitcode == 130
    assert (tmp_path / "said.err").read_text() == f"umix: interrupted; {GOES_ON}\n"
    (database,) = tmp_path.glob("runs/tune-*/study.db")
    storage = optuna.storages.RDBStorage(f"sqlite:///{database}")
    trials = optuna.load_study(study_name="four_moons-erm", storage=storage).trials
    storage.engine.dispose()
    assert [trial.state.name for trial in trials] == ["FAIL", "WAITING"]


@pytest.mark.system
def test_a_command_that_waits_for_its_standard_input_ends_at_once(tmp_path: Path, start_program: Start) -> None:
    (tmp_path / "a.csv").write_text("u,y\n" + "\n".join(f"{k % 7},{'ab'[k % 2]}" for k in range(60)) + "\n")
    fast = ["--net", "mlp", "--set=hidden=[8]", "--set=epochs=1", "--quiet"]
    assert main(["run", str(tmp_path / "a.csv"), "erm", "--label", "y", *fast, "--out", str(tmp_path / "runs")]) == 0
    (run,) = tmp_path.glob("runs/a-*")
    process = start_program(SILENT + PROGRAM, output=tmp_path / "said", arguments=["predict", str(run), "-", "-o", "-"])
    waits_in = Path(f"/proc/{process.pid}/wchan")
    while not ((tmp_path / "said.err").exists() and "pipe" in waits_in.read_text()):
        assert process.is_alive()
        time.sleep(0.01)
    os.kill(process.pid or 0, signal.SIGINT)
    process.join()
    assert process.exitcode == 130


@pytest.mark.system
def test_an_interrupt_in_a_callback_that_ignores_exceptions_is_not_lost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Dropped:
        def __del__(self) -> None:
            raise KeyboardInterrupt

    def facts(*_: object, **__: object) -> None:
        Dropped()
        while True:
            time.sleep(0.01)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in the background
    monkeypatch.setattr("umix.bench.doctor.facts", facts)
    try:
        assert main(["doctor"]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err == f"umix: interrupted; {GOES_ON}\n"


@pytest.mark.parametrize("command", ["doctor", "report"])
def test_every_command_says_that_it_was_interrupted(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("umix.bench.doctor.facts", interrupt)
    monkeypatch.setattr("umix.api.report.report", interrupt)
    before = signal.getsignal(signal.SIGTERM)
    assert main([command]) == 130
    assert capsys.readouterr().err == f"umix: interrupted; {GOES_ON}\n"
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize(("output", "code"), [(UNREAD, 0), (FULL, 1)], ids=["closed", "full"])
def test_output_that_nobody_reads_ends_quietly_and_a_full_disk_with_a_sentence(
    output: str, code: int, tmp_path: Path, start_program: Start
) -> None:
    process = start_program(output + PROGRAM, output=tmp_path / "said", arguments=["presets"])
    process.join()
    said = (tmp_path / "said.err").read_text()
    assert process.exitcode == code
    assert said.startswith("umix: The machine cannot go on: No space left on device; free some space" if code else "")
    assert said.count("\n") == code
