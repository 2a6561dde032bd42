"""Several processes with the same command in the same folder: no error, and the results of one process alone."""

import json
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from umix.bench.runs.record import load_run
from umix.cli import main

FAST = [f"--set={setting}" for setting in ("epochs=3", "sizes=[30,6,6,30]", "eval_size=10", "hidden=[4]")]
IMPORTS = ("polars", "umix.api.study", "umix.reports.tables.run_table")
#: Forks itself for every command, after the slow imports.
AT_ONCE = """
import importlib, sys
from umix.cli import main
for name in imports:
    importlib.import_module(name)
children = [0] * len(commands)
for place, words in enumerate(commands):
    children[place] = os.fork()
    if children[place] == 0:
        for number, end in ((1, ""), (2, ".err")):
            os.dup2(os.open(printed[place] + end, os.O_WRONLY | os.O_CREAT), number)
        code = 1
        try:
            code = main(words)
            sys.stdout.flush()
        finally:
            os._exit(code)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


@pytest.fixture
def at_once(start_program: Callable[..., BaseProcess], tmp_path: Path) -> Callable[..., list[Any]]:
    """Executes commands at once, each in a process, and returns what they have printed, as JSON."""

    def run(commands: list[list[str]], name: str, *, imports: tuple[str, ...] = IMPORTS) -> list[Any]:
        printed = [str(tmp_path / f"{name}-{place}.json") for place in range(len(commands))]
        words = [[*command, "--json"] for command in commands]
        process = start_program(AT_ONCE, commands=words, printed=printed, imports=imports)
        process.join()
        assert process.exitcode == 0, [Path(f"{file}.err").read_text() for file in printed]
        return [json.loads(Path(file).read_text()) for file in printed]

    return run


def counts(out: Path) -> dict[str, Any]:
    """The counts of every run by the name of its folder."""
    return {path.parent.name: load_run(path.parent).split_counts for path in out.glob("*/record.json")}


def leftovers(out: Path) -> list[Path]:
    return [path for path in out.rglob("*") if path.suffix == ".aside" or path.name == "failed.json"]


@pytest.mark.parametrize("processes", [2, 4])
def test_on_one_run_one_process_trains_and_all_print_its_record(
    processes: int, tmp_path: Path, at_once: Callable[..., list[Any]]
) -> None:
    run = ["run", "four_moons", "umix", "--set=length=2", *FAST, "--out"]
    printed = at_once([[*run, str(tmp_path / "all")]] * processes, "all")
    assert all(one == printed[0] for one in printed)  # to the last digit of the seconds
    assert main([*run, str(tmp_path / "alone"), "--quiet"]) == 0
    assert counts(tmp_path / "all") == counts(tmp_path / "alone")
    assert not leftovers(tmp_path)


def test_on_one_study_processes_share_the_runs(tmp_path: Path, at_once: Callable[..., list[Any]]) -> None:
    study = ["bench", "four_moons", "--methods", "erm,umix", "--seeds", "0:2", "--set=umix.length=2", *FAST, "--out"]
    printed = at_once([[*study, str(tmp_path / "all")]] * 4, "all")
    assert all(one == printed[0] for one in printed)
    assert main([*study, str(tmp_path / "alone"), "--quiet"]) == 0
    assert counts(tmp_path / "all") == counts(tmp_path / "alone")
    assert not leftovers(tmp_path)


def test_on_one_search_processes_share_the_trials_and_wait_for_the_last(
    tmp_path: Path, at_once: Callable[..., list[Any]]
) -> None:
    pytest.importorskip("optuna")
    search = ["tune", "four_moons", "erm", "--range=lr=0.01:0.1", "--trials=5", "--prune=none", *FAST, "--out"]
    imports = (*IMPORTS, "umix.bench.search.tune", "optuna", "alembic.command", "sqlalchemy.dialects.sqlite")
    commands = [[*search, str(tmp_path / "all")]] * 4 + [[*search, str(tmp_path / "alone")]]
    *printed, alone = at_once(commands, "all", imports=imports)
    for one in (*printed, alone):
        for name in ("preset", "study"):
            one.pop(name, None)
    assert printed == [alone] * 4
    assert not leftovers(tmp_path)


def test_on_one_image_cache_one_process_decodes_and_the_others_wait(
    tmp_path: Path, at_once: Callable[..., list[Any]]
) -> None:
    rng = np.random.default_rng(0)
    for number in range(60):
        path = tmp_path / "photos" / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (12, 12, 3), dtype=np.uint8)).save(path)
    fast = [f"--set={setting}" for setting in ("epochs=1", "task.size=8", "channels=[2]")]
    run = ["run", f"{tmp_path}/photos/", "erm", "--label-from", "folder", *fast, "--out"]
    at_once([[*run, str(tmp_path / "all"), "--seed", str(seed)] for seed in range(4)], "all")
    for seed in range(4):
        assert main([*run, str(tmp_path / "alone"), "--seed", str(seed), "--quiet"]) == 0
    assert counts(tmp_path / "all") == counts(tmp_path / "alone")
    files = {out: {path.name for path in (tmp_path / out / "cache").iterdir()} for out in ("all", "alone")}
    assert files["all"] == files["alone"]
