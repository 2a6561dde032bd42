"""Really killing the process, at several points, and executing the same run again."""

import signal
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from umix.bench.runs.epoch_table import read_epochs
from umix.bench.runs.paths import RunPaths
from umix.bench.runs.record import load_run
from umix.bench.spec.run_spec import RunSpec
from umix.checkpoint_pace import EVERY_EPOCH, CheckpointPace

QUICK = {"epochs": 6, "length": 6, "batch_size": 2, "sizes": [60, 8, 8, 60], "eval_size": 20}
STEPS = 68  # of an epoch
#: Executes the run. It kills itself after so many steps of a stage, or in the middle of writing so many files, if it is told to.
PROGRAM = """
import os, signal
from umix.bench.runs.execute import execute

replace, left = os.replace, {dies[0]: dies[1]} if dies else {}

def die_at(what, steps=1):
    left[what] = left.get(what, 10**9) - steps
    if left[what] < 0:
        os.kill(os.getpid(), signal.SIGKILL)

def dying_replace(*paths):
    die_at("files")
    replace(*paths)

class Dying:
    def start(self, stage, *, total, done):
        self.stage = stage
        die_at(stage, done)
    def advance(self, steps):
        die_at(self.stage, steps)
    def finish(self): ...
    def note(self, message): ...

os.replace = dying_replace
execute(spec, paths=paths, progress=Dying())
"""
NOW_AND_THEN, AT_THE_END = CheckpointPace(least=0.04), CheckpointPace(least=1e6, most=1e6)
Start = Callable[..., BaseProcess]


@pytest.fixture
def start(start_program: Callable[..., BaseProcess]) -> Start:
    def begin(out: Path, pace: CheckpointPace = EVERY_EPOCH, dies: tuple[str, int] | None = None) -> BaseProcess:
        spec = RunSpec(task="four_moons", method="umix", settings=QUICK)
        return start_program(PROGRAM, spec=spec, paths=RunPaths(out, pace=pace), dies=dies)

    return begin


def ended(process: BaseProcess) -> int | None:
    """The exit code of ``process``, once it has ended."""
    process.join()
    return process.exitcode


def test_a_run_killed_while_it_writes_goes_on_and_ends_with_the_same_counts_and_weights(
    tmp_path: Path, start: Start
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert ended(start(whole)) == 0
    for files in (1, 4, 3, 6, 5):
        assert ended(start(broken, dies=("files", files))) == -signal.SIGKILL
    assert ended(start(broken)) == 0
    assert_same_run(whole, broken)


@pytest.mark.parametrize("pace", [EVERY_EPOCH, NOW_AND_THEN, AT_THE_END], ids=["every", "now and then", "at the end"])
def test_a_run_killed_between_checkpoints_repeats_epochs_and_ends_with_the_same_counts_and_weights(
    tmp_path: Path, start: Start, pace: CheckpointPace
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert ended(start(whole)) == 0
    for stage, epochs in (("trajectory", 3), ("fit", 1), ("fit", 5)):
        assert ended(start(broken, pace, (stage, epochs * STEPS))) == -signal.SIGKILL
    assert ended(start(broken, pace)) == 0
    assert_same_run(whole, broken)


def assert_same_run(whole: Path, broken: Path) -> None:
    """The run in ``broken`` is that in ``whole``: counts, epochs, weights, everything but seconds."""
    first, second = (next(out.glob("four_moons-*")) for out in (whole, broken))
    assert load_run(first).split_counts == load_run(second).split_counts
    epochs = [[row for row in read_epochs(folder) if row.measure != "seconds"] for folder in (first, second)]
    assert epochs[0] == epochs[1]
    for name in ("thresholds.safetensors", "examples.safetensors", "trajectory.safetensors"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
    kept = sorted(path.name for path in (first / "weights").iterdir())
    assert kept == sorted(path.name for path in (second / "weights").iterdir())
    for name in kept:
        assert (first / "weights" / name).read_bytes() == (second / "weights" / name).read_bytes()
    assert not list(broken.rglob("*.aside"))
