"""A study in which the settings of every method are searched with the same budget."""

from pathlib import Path

import pytest

from umix.bench.executors.executor import Event
from umix.bench.executors.processes import Processes
from umix.bench.runs.paths import RunPaths
from umix.bench.study.study import Study
from umix.bench.study.study_plan import make_grid
from umix.bench.study.study_search import search_grid, search_jobs
from umix.errors import UserError

pytestmark = pytest.mark.system

STUDY = Study(
    tasks=["four_moons"],
    methods=["erm", "focal", "coral"],
    seeds="0:2",
    settings={"epochs": 2, "task.sizes": [30, 6, 6, 30], "task.eval_size": 10, "net.hidden": [4]},
)


def searched(out: Path, *, trials: int = 2, seen: list[Event] | None = None, workers: Processes | None = None):
    on_event = [].append if seen is None else seen.append
    grid = make_grid(STUDY, RunPaths(out))
    return search_grid(grid, trials=trials, select=None, on_event=on_event, workers=workers)


def test_every_method_gets_as_many_trials_on_a_seed_of_their_own_and_all_runs_what_was_found(tmp_path: Path) -> None:
    seen: list[Event] = []
    grid, found = searched(tmp_path, seen=seen)
    assert [tuned.method for tuned in found] == ["focal", "coral"]
    assert all(len(tuned.trials) == 2 for tuned in found)
    assert {tuned.seeds for tuned in found} == {(2,)}
    assert {event.key for event in seen} == {"focal on four_moons", "coral on four_moons"}
    assert len(grid.entries) == 6
    for tuned in found:
        for entry in grid.entries:
            if entry.label == tuned.method:
                assert {key: entry.spec.plan.setting(key)[2] for key in tuned.settings} == tuned.settings
    before = {entry.key for entry in make_grid(STUDY).entries if entry.label == "erm"}
    assert {entry.key for entry in grid.entries if entry.label == "erm"} == before


def test_workers_search_at_once_and_find_what_one_process_finds(tmp_path: Path) -> None:
    seen: list[Event] = []
    grid, found = searched(tmp_path / "workers", seen=seen, workers=Processes(2))
    expected, alone = searched(tmp_path / "alone")
    assert [tuned.trials for tuned in found] == [tuned.trials for tuned in alone]
    assert [entry.key for entry in grid.entries] == [entry.key for entry in expected.entries]
    assert {event.done for event in seen} == {0, 1}


def test_a_search_that_cannot_go_on_in_a_worker_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    jobs = search_jobs(make_grid(STUDY, RunPaths(tmp_path / "file")), trials=2, select=None)
    (outcome, _) = Processes(1).run_jobs(jobs, lambda event: None)
    assert outcome.result is None
    assert str(outcome.error).startswith("Cannot write")


def test_a_budget_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="tune= must be at least 1"):
        searched(tmp_path, trials=0)
