"""Runs in worker processes, some of which are killed."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from umix.bench.executors.executor import Event, Serial
from umix.bench.executors.processes import Processes
from umix.bench.runs.failure import load_failure
from umix.bench.runs.paths import RunPaths
from umix.bench.spec.run_spec import RunSpec
from umix.checkpoint_pace import EVERY_EPOCH
from umix.errors import UserError

pytestmark = pytest.mark.system

FAST = {"epochs": 3, "hidden": [8], "sizes": [20, 4, 4, 20], "eval_size": 5}


def spec(method: str = "erm", seed: int = 0, **settings: object) -> RunSpec:
    return RunSpec(task="four_moons", method=method, settings={**FAST, **settings}, seed=seed)


def kill(event: Event) -> None:
    os.kill(int(event.worker.rpartition(":")[2]), signal.SIGKILL)


def test_workers_give_the_outcomes_of_one_process(tmp_path: Path) -> None:
    specs = [spec("umix", seed, length=2) for seed in range(3)]
    specs.append(spec("umix", length=2, **{"trajectory.epochs": 1}))
    expected = {outcome.key: outcome for outcome in Serial().run(specs, RunPaths(tmp_path / "a"), lambda event: None)}
    workers = set()
    outcomes = {
        outcome.key: outcome
        for outcome in Processes(2).run(specs, RunPaths(tmp_path / "b"), lambda event: workers.add(event.worker))
    }
    assert outcomes.keys() == expected.keys()
    for key, outcome in outcomes.items():
        one, other = outcome.record, expected[key].record
        assert (one and one.split_counts) == (other and other.split_counts)
    failure = outcomes[specs[-1].key].failure
    assert failure is not None
    assert "The window must end within" in failure.sentence
    assert len(workers) == 2
    assert f":{os.getpid()}" not in "".join(workers)


def test_the_run_of_a_killed_worker_goes_on_once_and_has_failed_after_the_second_time(
    tmp_path: Path, gated: Callable[[Path], RunSpec]
) -> None:
    gate = tmp_path / "opened"
    goes_on, dies = gated(gate), gated(tmp_path / "never")
    checkpoint, starts = tmp_path / goes_on.directory_name / "checkpoint.safetensors", []

    def on_event(event: Event) -> None:
        if event.kind == "start" and event.key == dies.key:
            kill(event)
        if event.kind == "start" and event.key == goes_on.key:
            starts.append(event.done)
            if len(starts) == 1:
                while not checkpoint.exists():
                    time.sleep(0.01)
                kill(event)
            else:
                gate.touch()

    outcomes = {
        outcome.key: outcome
        for outcome in Processes(1).run([goes_on, dies], RunPaths(tmp_path, pace=EVERY_EPOCH), on_event)
    }
    assert starts[0] == 0
    assert starts[1] > 0  # from its checkpoint
    assert outcomes[goes_on.key].record is not None
    failure = outcomes[dies.key].failure
    assert failure is not None
    assert failure.error == "WorkerDied"
    assert "died 2 times" in failure.message
    assert load_failure(tmp_path / dies.directory_name) == failure


def test_there_must_be_a_worker() -> None:
    with pytest.raises(UserError, match="workers="):
        Processes(0)
