"""Runs one after the other: outcomes, failures, and runs of other processes."""

import threading
from pathlib import Path

import pytest

from umix.bench.executors.executor import Event, Serial
from umix.bench.runs.failure import load_failure
from umix.bench.runs.lock import run_lock
from umix.bench.runs.paths import RunPaths
from umix.bench.runs.record import load_run
from umix.bench.spec.run_spec import RunSpec

FAST = {"epochs": 3, "hidden": [8], "sizes": [20, 4, 4, 20], "eval_size": 5}


def spec(method: str = "erm", seed: int = 0, **settings: object) -> RunSpec:
    return RunSpec(task="four_moons", method=method, settings={**FAST, **settings}, seed=seed)


def test_every_run_has_an_outcome_and_its_record_is_on_disk(tmp_path: Path) -> None:
    specs, events = [spec(), spec(seed=1)], []
    outcomes = list(Serial().run(specs, RunPaths(tmp_path), events.append))
    assert [outcome.key for outcome in outcomes] == [made.key for made in specs]
    for made, outcome in zip(specs, outcomes, strict=True):
        assert outcome.record is not None
        assert outcome.record.split_counts == load_run(tmp_path / made.directory_name).split_counts
    assert {(event.key, event.stage) for event in events} == {(made.key, "fit") for made in specs}


def test_a_run_that_raises_is_kept_and_the_rest_go_on(tmp_path: Path) -> None:
    wrong = spec("umix", length=2, **{"trajectory.epochs": 1})
    failed, done = Serial().run([wrong, spec()], RunPaths(tmp_path), lambda event: None)
    assert failed.failure is not None
    assert "The window must end within" in failed.failure.sentence
    assert load_failure(tmp_path / wrong.directory_name) == failed.failure
    assert done.record is not None


def test_a_failed_run_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise MemoryError("no more")

    with monkeypatch.context() as patch:
        patch.setattr("umix.methods.erm.ERM.train", broken)
        (first,) = Serial().run([spec()], RunPaths(tmp_path), lambda event: None)
    assert first.failure is not None
    assert first.failure.error == "MemoryError"
    (second,) = Serial().run([spec()], RunPaths(tmp_path), lambda event: None)
    assert second.record is not None
    assert load_failure(tmp_path / spec().directory_name) is None


def test_a_run_of_another_process_comes_last(tmp_path: Path) -> None:
    others, own = spec(), spec(seed=1)
    held, let_go, notes = threading.Event(), threading.Event(), []

    def another_process() -> None:
        with run_lock(tmp_path, others.directory_name):
            held.set()
            let_go.wait()

    def on_event(event: Event) -> None:
        if event.kind == "note":
            notes.append(event.message)
            let_go.set()  # not before we wait

    holder = threading.Thread(target=another_process)
    holder.start()
    held.wait()
    keys = [outcome.key for outcome in Serial().run([others, own], RunPaths(tmp_path), on_event)]
    holder.join()
    assert keys == [own.key, others.key]
    assert len(notes) == 1
