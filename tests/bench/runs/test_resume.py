"""Really killing the process, at several points, and executing the same run again."""

import signal
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from umix.bench.runs.epoch_table import read_epochs
from umix.bench.runs.places import Places
from umix.bench.runs.record import load_run
from umix.bench.spec.run_spec import RunSpec
from umix.checkpoint_pace import EVERY_EPOCH, CheckpointPace

SLOW = {"epochs": 12, "length": 12, "batch_size": 2, "sizes": [150, 10, 10, 150], "eval_size": 50}
QUICK = {"epochs": 6, "length": 6, "batch_size": 2, "sizes": [60, 8, 8, 60], "eval_size": 20}
STEPS = 68  # of an epoch of the quick one
#: Executes the run; if it is told a stage and a number, it kills itself after so many steps of that stage.
PROGRAM = """
import os, signal
from umix.bench.runs.execute import execute

class Dying:
    def start(self, stage, *, total, done):
        self.left = dies[1] - done if dies and stage == dies[0] else 10**9
    def advance(self, steps):
        self.left -= steps
        if self.left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
    def finish(self): ...
    def note(self, message): ...

execute(spec, places=places, progress=Dying())
"""
NOW_AND_THEN, AT_THE_END = CheckpointPace(least=0.04), CheckpointPace(least=1e6, most=1e6)
Start = Callable[..., BaseProcess]


@pytest.fixture
def start(start_program: Callable[..., BaseProcess]) -> Start:
    def begin(
        out: Path, settings: object = SLOW, pace: CheckpointPace = EVERY_EPOCH, dies: tuple[str, int] | None = None
    ) -> BaseProcess:
        spec = RunSpec(task="four_moons", method="umix", settings=settings)
        return start_program(PROGRAM, spec=spec, places=Places(out, pace=pace), dies=dies)

    return begin


def ended(process: BaseProcess) -> int | None:
    """The exit code of ``process``, once it has ended."""
    process.join()
    return process.exitcode


def saves(out: Path, pattern: str) -> int:
    """When the newest file of this pattern was written, in nanoseconds; 0 where there is none."""
    return max((path.stat().st_mtime_ns for path in out.glob(pattern)), default=0)


def kill_after(start: Start, out: Path, pattern: str, times: int, delay: float) -> None:
    """Run, and kill the process without warning ``delay`` after the files of ``pattern`` were saved anew ``times`` times."""
    process = start(out)
    newest = saves(out, pattern)
    while times and process.is_alive():
        now = saves(out, pattern)
        if now != newest:
            newest, times = now, times - 1
        time.sleep(0.001)
    time.sleep(delay)
    process.kill()
    assert ended(process) == -signal.SIGKILL, "the run ended before it could be killed"


def test_a_killed_run_goes_on_and_ends_with_the_same_counts_and_weights(tmp_path: Path, start: Start) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert ended(start(whole)) == 0
    kill_after(start, broken, "stages/*/checkpoint.safetensors", times=2, delay=0.0)
    kill_after(start, broken, "stages/*/trajectory.safetensors", times=3, delay=0.03)
    kill_after(start, broken, "four_moons-*/checkpoint.safetensors", times=2, delay=0.0)
    kill_after(start, broken, "four_moons-*/weights/*.safetensors", times=1, delay=0.01)
    assert ended(start(broken)) == 0
    assert_same_run(whole, broken)


@pytest.mark.parametrize("pace", [EVERY_EPOCH, NOW_AND_THEN, AT_THE_END], ids=["every", "now and then", "at the end"])
def test_a_run_killed_between_checkpoints_repeats_epochs_and_ends_with_the_same_counts_and_weights(
    tmp_path: Path, start: Start, pace: CheckpointPace
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert ended(start(whole, QUICK)) == 0
    for stage, epochs in (("trajectory", 3), ("fit", 1), ("fit", 5)):
        assert ended(start(broken, QUICK, pace, (stage, epochs * STEPS))) == -signal.SIGKILL
    assert ended(start(broken, QUICK, pace)) == 0
    assert_same_run(whole, broken)


def assert_same_run(whole: Path, broken: Path) -> None:
    """The run in ``broken`` is that in ``whole``: counts, epochs, weights, everything but seconds."""
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
