"""Locks between real processes, some of which are killed."""

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from umix.bench.runs.execute import execute
from umix.bench.runs.lock import Busy, is_locked, run_lock
from umix.bench.spec.run_spec import RunSpec

HOLD = """
import signal
from pathlib import Path
from umix.bench.runs.lock import run_lock
with run_lock(Path(folder), "a-run"):
    print("held", flush=True)
    signal.pause()
"""
SETTINGS = {"epochs": 6, "length": 2, "trajectory.epochs": 2, "batch_size": 2, "sizes": [60, 8, 8, 60], "eval_size": 20}
#: Executes the run and stops in its final fit, as if the machine had no time for it; then the file ``stopped`` is there.
STOPS = """
import os, signal
from pathlib import Path
from umix.bench.runs.execute import execute

class Stopping:
    def start(self, stage, *, total, done):
        self.left = 100 if stage == "fit" else 10**9
    def advance(self, steps):
        self.left -= steps
        if self.left < 0:
            Path(stopped).touch()
            os.kill(os.getpid(), signal.SIGSTOP)
    def finish(self): ...
    def note(self, message): ...

execute(spec, out=Path(out), progress=Stopping())
"""
RUN = ["run", "four_moons", "umix", "--json", *(f"--set={key}={value}" for key, value in SETTINGS.items())]
Start = Callable[..., BaseProcess]


def wait_until_said(process: BaseProcess, words: str, said: Path) -> None:
    """Return once ``process`` has said these words, in the file of its output."""
    while not (said.exists() and words in " ".join(said.read_text().split())):
        assert process.is_alive(), said.read_text()
        time.sleep(0.01)


def test_a_lock_is_taken_over_from_a_killed_process_and_from_no_other(tmp_path: Path, start_program: Start) -> None:
    holder = start_program(HOLD, output=tmp_path / "said.txt", folder=str(tmp_path))
    wait_until_said(holder, "held", tmp_path / "said.txt")
    assert is_locked(tmp_path, "a-run")
    assert not is_locked(tmp_path, "another-run")
    with pytest.raises(Busy), run_lock(tmp_path, "a-run", wait=False):
        pass
    holder.kill()
    holder.join()
    assert not is_locked(tmp_path, "a-run")
    with run_lock(tmp_path, "a-run", wait=False):
        pass


def test_a_lock_is_let_go_when_its_block_raises(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), run_lock(tmp_path, "a-run"):
        raise ZeroDivisionError
    assert not is_locked(tmp_path, "a-run")


def test_of_three_processes_with_one_spec_one_trains_even_if_the_first_is_killed(
    tmp_path: Path, start_program: Start, start_umix: Start
) -> None:
    out, spec = tmp_path / "runs", RunSpec(task="four_moons", method="umix", settings=SETTINGS)
    first = start_program(STOPS, spec=spec, out=str(out), stopped=str(tmp_path / "stopped"))
    while not (tmp_path / "stopped").exists():  # it holds the lock and gets no further
        assert first.is_alive()
        time.sleep(0.01)
    other = start_umix(*RUN, "--out", str(out), output=tmp_path / "other.json")
    with ThreadPoolExecutor(1) as thread:
        third = thread.submit(execute, spec, out=out)
        wait_until_said(other, "waiting for it", tmp_path / "other.json.err")
        assert not third.done()
        first.kill()
        first.join()
        other.join()
        two = third.result()
    assert other.exitcode == 0, (tmp_path / "other.json.err").read_text()
    one = json.loads((tmp_path / "other.json").read_text())
    assert one["stages"] == two.model_dump()["stages"]  # to the last digit of the seconds: one read the other's record
    assert one["stages"]["trajectory"]["reused"]  # the killed process had finished it
    assert execute(spec, out=tmp_path / "whole").split_counts == two.split_counts
    assert not list(tmp_path.rglob("*.aside"))
