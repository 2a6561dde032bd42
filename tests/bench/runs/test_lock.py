"""Locks between real processes, some of which are killed."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from umix.bench.runs.execute import execute
from umix.bench.runs.lock import Busy, is_locked, run_lock
from umix.bench.spec.run_spec import RunSpec

HOLD = """
import sys, time
from pathlib import Path
from umix.bench.runs.lock import run_lock
with run_lock(Path(sys.argv[1]), "a-run"):
    print("held", flush=True)
    time.sleep(60)
"""
SETTINGS = {"epochs": 12, "length": 2, "batch_size": 2, "sizes": [150, 10, 10, 150], "eval_size": 50}
RUN = [sys.executable, "-m", "umix", "run", "four_moons", "umix", "--json"]
RUN += [f"--set={key}={value}" for key, value in SETTINGS.items()]


def run(out: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*RUN, "--out", str(out)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_its_turn(process: subprocess.Popen[str]) -> None:
    """Return once ``process`` has said that it waits."""
    assert process.stderr is not None
    while "waiting for it" not in (line := process.stderr.readline()):
        assert line, "the process ended without waiting"


def ended(process: subprocess.Popen[str]) -> dict:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return json.loads(out)


def test_a_lock_is_taken_over_from_a_killed_process_and_from_no_other(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            assert is_locked(tmp_path, "a-run")
            assert not is_locked(tmp_path, "another-run")
            with pytest.raises(Busy), run_lock(tmp_path, "a-run", wait=False):
                pass
        finally:
            holder.send_signal(signal.SIGKILL)
            holder.wait()
    assert not is_locked(tmp_path, "a-run")
    with run_lock(tmp_path, "a-run", wait=False):
        pass


def test_a_lock_is_let_go_when_its_block_raises(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), run_lock(tmp_path, "a-run"):
        raise ZeroDivisionError
    assert not is_locked(tmp_path, "a-run")


def test_of_three_processes_with_one_spec_one_trains_even_if_the_first_is_killed(tmp_path: Path) -> None:
    first = run(tmp_path)
    while not list(tmp_path.glob("four_moons-*/checkpoint.safetensors")):
        assert first.poll() is None, first.communicate()
        time.sleep(0.01)
    first.send_signal(signal.SIGSTOP)  # it holds the lock and gets no further
    other, spec = run(tmp_path), RunSpec(task="four_moons", method="umix", settings=SETTINGS)
    with ThreadPoolExecutor(1) as thread:
        third = thread.submit(execute, spec, out=tmp_path)
        wait_for_its_turn(other)
        assert not third.done()
        first.send_signal(signal.SIGKILL)
        first.communicate()
        one, two = ended(other), third.result()
    assert one["stages"] == two.model_dump()["stages"]  # to the last digit of the seconds: one read the other's record
    assert one["stages"]["trajectory"]["reused"]  # the killed process had finished it
    assert execute(spec, out=tmp_path / "whole").split_counts == two.split_counts
    assert not list(tmp_path.rglob("*.aside"))
