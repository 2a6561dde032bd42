"""Tasks are found by name, and a wrong name is answered with the right one."""

from pathlib import Path

import pytest

from umix.data.benchmarks.colored_digits import ColoredDigits
from umix.data.benchmarks.four_moons import FourMoons
from umix.data.registry import OWN, TASKS, load_task, refuse_root, source_kind, task_source
from umix.data.task import TaskSource
from umix.errors import UserError


def test_every_task_is_registered_under_its_own_name():
    assert all(source.name == name for name, source in TASKS.items())
    assert {ColoredDigits, FourMoons} <= set(TASKS.values())


def test_a_source_takes_its_options_and_loads_nothing():
    assert task_source("four_moons", noise=0.5) == FourMoons(noise=0.5)


def test_load_task_loads_with_its_options():
    task = load_task("four_moons", sizes=(3, 1, 1, 3), eval_size=2)
    assert task.name == "four_moons"
    assert task.fingerprint == FourMoons(sizes=(3, 1, 1, 3), eval_size=2).load().fingerprint


@pytest.mark.parametrize("call", [task_source, load_task], ids=["task_source", "load_task"])
def test_an_unknown_task_gets_the_nearest_known_one(call):
    with pytest.raises(
        UserError, match=r"^Unknown task 'four_moon'; did you mean 'four_moons'\? Known: .*colored_digits"
    ):
        call("four_moon")


def test_an_unknown_option_of_a_task_gets_the_nearest_known_one():
    with pytest.raises(UserError, match=r"^Unknown setting of task 'nois'; did you mean 'noise'\?"):
        load_task("four_moons", nois=0.1)


@pytest.mark.parametrize(
    ("root", "seen"), [(None, None), ("data", Path("data")), (Path("data"), Path("data"))], ids=["none", "text", "path"]
)
def test_the_root_reaches_the_source_as_a_path(monkeypatch, root, seen):
    class Spy(TaskSource):
        name = "spy"

        def load(self, root):
            roots.append(root)
            return FourMoons(sizes=(3, 1, 1, 3), eval_size=2).load()

    roots = []
    monkeypatch.setitem(TASKS.own, "spy", Spy)
    load_task("spy", root)
    assert roots == [seen]


def test_a_folder_of_files_must_go_with_a_task_that_reads_one():
    refuse_root(None, [FourMoons])
    refuse_root(Path("data"), [FourMoons, TASKS["waterbirds"]])
    for kinds in ([FourMoons], OWN.values()):
        with pytest.raises(UserError, match=r"^root= must go with a task that has files in a folder \(waterbirds, "):
            refuse_root(Path("data"), kinds)


@pytest.mark.parametrize("name", ["x" * 5000, "a\x00b", "\udc80"])
def test_a_name_that_no_file_can_have_is_an_unknown_task(name: str) -> None:
    with pytest.raises(UserError, match="Unknown task"):
        source_kind(name)
