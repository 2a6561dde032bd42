"""Really killing the process, at several points, and running the same command again."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from umix.bench.runs.epoch_table import read_epochs
from umix.bench.runs.record import load_run

COMMAND = [sys.executable, "-m", "umix", "run", "four_moons", "umix", "--quiet"]
COMMAND += [
    f"--set={setting}"
    for setting in ("epochs=12", "length=12", "batch_size=2", "sizes=[150,10,10,150]", "eval_size=50")
]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def start(out: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*COMMAND, "--out", str(out)], env=ENVIRONMENT, stdout=subprocess.DEVNULL)


def saves(out: Path, pattern: str) -> int:
    """When the newest file of this pattern was written, in nanoseconds; 0 where there is none."""
    return max((path.stat().st_mtime_ns for path in out.glob(pattern)), default=0)


def kill_after(out: Path, pattern: str, times: int, delay: float) -> None:
    """Run, and kill the process without warning ``delay`` after the files of ``pattern`` were saved anew ``times`` times."""
    process = start(out)
    newest = saves(out, pattern)
    while times and process.poll() is None:
        now = saves(out, pattern)
        if now != newest:
            newest, times = now, times - 1
        time.sleep(0.001)
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "the run ended before it could be killed"


def test_a_killed_run_goes_on_and_ends_with_the_same_counts_and_weights(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert start(whole).wait() == 0
    kill_after(broken, "stages/*/checkpoint.safetensors", times=2, delay=0.0)
    kill_after(broken, "stages/*/trajectory.safetensors", times=3, delay=0.03)
    kill_after(broken, "four_moons-*/checkpoint.safetensors", times=2, delay=0.0)
    kill_after(broken, "four_moons-*/weights/*.safetensors", times=1, delay=0.01)
    assert start(broken).wait() == 0
    first, second = (next(out.glob("four_moons-*")) for out in (whole, broken))
    assert load_run(first).split_counts == load_run(second).split_counts
    epochs = [[row for row in read_epochs(folder) if row.measure != "seconds"] for folder in (first, second)]
    assert epochs[0] == epochs[1]
    for name in ("decisions.safetensors", "examples.safetensors", "trajectory.safetensors"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
    kept = sorted(path.name for path in (first / "weights").iterdir())
    assert kept == sorted(path.name for path in (second / "weights").iterdir())
    for name in kept:
        assert (first / "weights" / name).read_bytes() == (second / "weights" / name).read_bytes()
    assert not list(broken.rglob("*.aside"))
