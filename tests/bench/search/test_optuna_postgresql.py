"""A search in a PostgreSQL database, of a server that the test starts."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from umix.bench.executors.processes import Processes
from umix.bench.runs.paths import RunPaths
from umix.bench.spec.run_spec import RunSpec
from umix.bench.study.study_search import SearchJob

pytestmark = pytest.mark.system

FAST = {"epochs": 2, "task.sizes": [30, 6, 6, 30], "task.eval_size": 10, "net.hidden": [4]}


@pytest.fixture
def database() -> Iterator[str]:
    """The URL of a database on a server of its own, on a socket in its folder; skipped where there is none to start."""
    pytest.importorskip("psycopg", reason="the extra postgresql is not installed")
    programs = shutil.which("initdb") or next(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")), None)
    if programs is None:
        pytest.skip("there is no PostgreSQL server: install it with apt-get install postgresql")
    user = "postgres" if os.getuid() == 0 else None  # the server refuses to run as root
    with tempfile.TemporaryDirectory(prefix="pg", dir="/tmp") as folder:  # the path of a socket must be short
        os.chmod(folder, 0o777)  # noqa: S103

        def run(program: str, *arguments: str) -> None:
            command = [str(Path(programs).with_name(program)), "-D", f"{folder}/data", *arguments]
            subprocess.run(command, check=True, user=user, stdout=subprocess.DEVNULL, cwd=folder)

        run("initdb", "--username=umix", "--auth=trust")
        run(
            "pg_ctl",
            "start",
            "--wait",
            "--log",
            f"{folder}/log",
            "-o",
            f"-c listen_addresses= -c unix_socket_directories={folder}",
        )
        try:
            yield f"postgresql://umix@/postgres?host={folder}"
        finally:
            run("pg_ctl", "stop", "--wait", "--mode=immediate")


@pytest.mark.enable_socket
def test_two_workers_share_the_budget_of_one_study_which_goes_on_later(tmp_path: Path, database: str) -> None:
    spec = RunSpec(task="four_moons", method="focal", settings={**FAST, "task.data_seed": os.getpid()})
    job = SearchJob("one", spec, 4, RunPaths(tmp_path), None, (0,), storage=database)
    ended = list(Processes(2).run_jobs([job, replace(job, key="two")], lambda event: None))
    assert [searched.error for searched in ended] == [None, None]
    for trials in (4, 6):
        found = replace(job, trials=trials).run(lambda event: None).result
        assert found is not None
        assert len(found.trials) == trials
