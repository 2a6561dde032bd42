"""A search in a PostgreSQL database: UMIX_TEST_POSTGRESQL=postgresql://user@host/base make test."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from umix.bench.executors.processes import Processes
from umix.bench.runs.paths import RunPaths
from umix.bench.spec.run_spec import RunSpec
from umix.bench.study.study_search import SearchJob

pytestmark = pytest.mark.system

URL = os.environ.get("UMIX_TEST_POSTGRESQL")
FAST = {"epochs": 2, "task.sizes": [30, 6, 6, 30], "task.eval_size": 10, "net.hidden": [4]}


@pytest.mark.enable_socket
@pytest.mark.skipif(URL is None, reason="UMIX_TEST_POSTGRESQL names no database")
def test_two_workers_share_the_budget_of_one_study_which_goes_on_later(tmp_path: Path) -> None:
    spec = RunSpec(task="four_moons", method="focal", settings={**FAST, "task.data_seed": os.getpid()})
    job = SearchJob("one", spec, 4, RunPaths(tmp_path), None, (0,), storage=URL)
    ended = list(Processes(2).run_jobs([job, replace(job, key="two")], lambda event: None))
    assert [searched.error for searched in ended] == [None, None]
    for trials in (4, 6):
        found = replace(job, trials=trials).run(lambda event: None).result
        assert found is not None
        assert len(found.trials) == trials
