"""Failures are kept, and never in the way of a record."""

from pathlib import Path

import pytest

from umix.bench.runs.execute import execute
from umix.bench.runs.failure import Failure, load_failure
from umix.bench.runs.lock import run_lock
from umix.bench.spec.run_spec import RunSpec
from umix.errors import UserError
from umix.run_folder import FAILED

SPEC = RunSpec(
    task="four_moons",
    method="erm",
    settings={"epochs": 1, "hidden": [4], "sizes": [10, 4, 4, 10], "eval_size": 5},
)


def failure(message: str = "out of luck") -> Failure:
    try:
        raise RuntimeError(message)
    except RuntimeError as error:
        return Failure.of(error, task="four_moons", method="erm", seed=0, key=SPEC.key)


def test_a_failure_is_read_back_with_its_trace(tmp_path: Path) -> None:
    failure().save(tmp_path, SPEC.directory_name)
    found = load_failure(tmp_path / SPEC.directory_name)
    assert found is not None
    assert found.sentence == "RuntimeError: out of luck"
    assert "raise RuntimeError(message)" in found.trace


def test_a_run_that_succeeds_forgets_its_failure(tmp_path: Path) -> None:
    failure().save(tmp_path, SPEC.directory_name)
    record = execute(SPEC, out=tmp_path)
    assert not (record.directory / FAILED).exists()
    failure().save(tmp_path, SPEC.directory_name)  # by a process that failed before and is late to say so
    assert not (record.directory / FAILED).exists()
    assert load_failure(record.directory) is None


def test_a_failure_is_not_written_while_another_process_executes_the_run(tmp_path: Path) -> None:
    with run_lock(tmp_path, SPEC.directory_name):
        failure().save(tmp_path, SPEC.directory_name)
    assert load_failure(tmp_path / SPEC.directory_name) is None


@pytest.mark.parametrize("text", ["{", "[]", '{"kind": "other"}'], ids=["truncated", "foreign", "incomplete"])
def test_a_damaged_failure_is_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / FAILED).write_text(text)
    with pytest.raises(UserError, match=r"failed\.json is damaged \(.*\); delete it and run again\.$") as caught:
        load_failure(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("message", "line"), [("one\ntwo", "RuntimeError: one"), ("", "RuntimeError: no message")])
def test_a_failure_is_told_in_one_line(message: str, line: str) -> None:
    assert failure(message).sentence == line
