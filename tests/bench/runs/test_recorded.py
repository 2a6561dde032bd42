"""The record of a command that is given again: found where it is certainly the same run, and only there."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import umix.bench.runs.recorded as module
from umix.bench.runs.execute import execute
from umix.bench.runs.record import RunRecord
from umix.bench.runs.recorded import recorded_run
from umix.bench.spec.run_spec import RunSpec
from umix.data.registry import task_source
from umix.run_folder import CHECKPOINT, RECORD

SETTINGS = {"task.label": "income", "task.groups": "sex", "epochs": 1, "net": "mlp", "net.hidden": [4]}
ASKED: dict[str, Any] = {"method": "erm", "settings": SETTINGS, "seed": 0, "preset": "default"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    folder = tmp_path_factory.mktemp("recorded")
    rows = [f"{k % 7},{'FM'[k % 2]},{'no' if k % 3 else 'yes'}" for k in range(120)]
    (folder / "people.csv").write_text("\n".join(["age,sex,income", *rows]))
    return execute(RunSpec(task=str(folder / "people.csv"), **ASKED), out=folder / "runs")


def again(record: RunRecord, **changes: Any) -> RunRecord | None:
    return recorded_run(record.directory.parent, **{"task": record.task, **ASKED, **changes})


def test_the_same_words_on_the_same_file_are_the_run_that_execute_returns(finished: RunRecord) -> None:
    found = again(finished)
    assert found is not None
    assert found.model_dump() == finished.model_dump()
    assert found.directory == finished.directory
    assert found.key == RunSpec(task=finished.task, **ASKED).key


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 1},
        {"method": "umix"},
        {"settings": SETTINGS | {"epochs": 2}},
        {"settings": {**SETTINGS, "net.hidden": (8,)}},
        {"settings": SETTINGS | {"net": "linear"}},
        {"preset": "paper"},
        {"preset": "mine.toml"},
        {"preset": "mine.toml:quick"},
        {"task": "people.csv"},
    ],
    ids=str,
)
def test_other_words_are_another_run(finished: RunRecord, changes: dict[str, Any]) -> None:
    assert again(finished, **changes) is None


def test_another_version_of_umix_or_a_changed_file_of_it_plans_again(
    finished: RunRecord, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(module, "__version__", "99.0")
        assert again(finished) is None
    monkeypatch.setattr(module, "_PACKAGE", tmp_path)
    assert again(finished) is not None
    changed = tmp_path / "presets.toml"
    changed.touch()
    later = (finished.directory / RECORD).stat().st_mtime + 1
    os.utime(changed, (later, later))
    assert again(finished) is None


def test_a_run_whose_process_was_killed_before_it_cleaned_up_is_left_to_execute(finished: RunRecord) -> None:
    checkpoint = finished.directory / CHECKPOINT
    checkpoint.touch()
    try:
        assert again(finished) is None
    finally:
        checkpoint.unlink()


def test_methods_and_nets_of_other_packages_are_planned_again(
    finished: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Entry:
        name = "erm"

    monkeypatch.setattr(module, "entry_points", lambda group: [Entry] if group == "umix.methods" else [])
    assert again(finished) is None


def test_a_file_that_has_other_content_or_is_missing_is_left_to_execute(finished: RunRecord) -> None:
    path = Path(finished.task)
    content = path.read_text()
    try:
        path.write_text(content + "\n9,F,yes")
        assert again(finished) is None
        path.unlink()
        assert again(finished) is None
    finally:
        path.write_text(content)
    assert again(finished) is not None


def test_the_content_of_every_kind_of_data_is_that_of_its_source(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("y,text\nno,a\nyes,b")
    np.savez(tmp_path / "x.npz", x=np.zeros((2, 3)), y=np.array([0, 1]))
    np.save(tmp_path / "x.npy", np.zeros((2, 3)))
    for folder in ("photos", "listed"):
        (tmp_path / folder / "cat").mkdir(parents=True)
        (tmp_path / folder / "cat" / "1.png").write_bytes(b"image")
    (tmp_path / "listed" / "metadata.csv").write_text("path,kind\ncat/1.png,cat")
    for name, options in (
        ("rows.csv", {"label": "y"}),
        ("rows.csv", {"label": "y", "text": "text"}),
        ("x.npz", {"label": "y"}),
        ("x.npy", {"label": "y", "rows": str(tmp_path / "rows.csv")}),
        ("photos", {"label_from": "folder"}),
        ("listed", {"label": "kind"}),
        ("photos", {"label": "kind", "metadata": str(tmp_path / "listed" / "metadata.csv")}),
    ):
        source = task_source(str(tmp_path / name), **options)
        asked = {f"task.{key}": value for key, value in options.items()}
        assert module._content(tmp_path / name, source.as_json(), asked) == source.content


@pytest.mark.parametrize(
    "changes", [{"task": "a\0.csv"}, {"task": "caf\udce9.csv"}, {"settings": {"task.label": "\udce9"}}]
)
def test_words_that_no_run_can_have_are_left_to_the_spec(finished: RunRecord, changes: dict[str, Any]) -> None:
    assert again(finished, **changes) is None


def test_damaged_records_of_other_runs_do_not_matter(finished: RunRecord) -> None:
    other = finished.directory.parent / "people-erm-00000000"
    other.mkdir()
    (other / RECORD).write_bytes(b'{"kind": "umix run')
    assert again(finished) is not None
