"""Folders of records."""

import json
from pathlib import Path

import pytest

from umix.bench.runs.record import RunRecord, load_run, load_runs
from umix.bench.runs.split_counts import SplitCounts
from umix.errors import UserError


def saved(folder: Path, seed: int) -> RunRecord:
    counts = {"hits": [[3]], "sizes": [4], "class_hits": [[3]], "class_sizes": [4]}
    record = RunRecord(
        task="toy",
        method="erm",
        seed=seed,
        settings={"lr": 0.1},
        plan={name: {"name": name} for name in ("task", "method", "net")},
        key=f"k{seed}",
        fingerprint="f",
        groups=["a"],
        classes=["only"],
        input_shape=[2],
        train_sizes=[9],
        split_counts={"val": counts, "test": counts},
        stages={},
        warnings=["größer"],
        versions={},
    )
    record.save(folder / f"toy-erm-seed{seed}")
    return record


def test_finished_runs_are_loaded_whole_in_the_order_of_their_names(tmp_path: Path) -> None:
    expected = [saved(tmp_path, seed) for seed in (2, 0, 1)]
    runs = load_runs(tmp_path)
    assert [run.seed for run in runs.records] == [0, 1, 2]
    assert runs.records[2].model_dump() == expected[0].model_dump()
    assert runs.records[0].directory == tmp_path / "toy-erm-seed0"
    assert runs.skipped == []


@pytest.mark.parametrize("beginning", ["toy-erm-seed1", "toy-erm-seed12", "toy-erm-seed2", "toy-erm-seed20"])
def test_a_run_is_named_by_its_folder_or_by_any_beginning_that_no_other_run_has(tmp_path: Path, beginning: str) -> None:
    for seed in (1, 12, 20):
        saved(tmp_path, seed)
    (tmp_path / "toy-erm-seed21").mkdir()  # not finished
    expected = {"toy-erm-seed1": 1, "toy-erm-seed12": 12}.get(beginning, 20)
    assert load_run(tmp_path / beginning).seed == expected
    assert load_run(str(tmp_path / beginning)).directory == tmp_path / f"toy-erm-seed{expected}"


def test_a_beginning_of_several_runs_or_of_none_is_refused_in_one_sentence(tmp_path: Path) -> None:
    for seed in range(6):
        saved(tmp_path, seed)
    with pytest.raises(
        UserError, match=r"one run's folder, but 6 begin so: toy-erm-seed0, .*seed3, …; write more of the"
    ):
        load_run(tmp_path / "toy")
    for unknown in ("seed0", "toy-erm-seed9", "toy-erm-seed*", "toy-erm-seed[01]"):
        with pytest.raises(
            UserError, match=r"There is no finished run in .*: no folder of a run is called so or begins so"
        ):
            load_run(tmp_path / unknown)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="is missing"):
        load_run(tmp_path / "empty")


def test_stages_caches_files_and_unfinished_runs_are_passed_over(tmp_path: Path) -> None:
    saved(tmp_path, 0)
    for name in ("stages/trajectory-1", "cache", "toy-erm-seed9/weights"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "notes.txt").write_text("mine")
    runs = load_runs(tmp_path)
    assert (len(runs.records), runs.skipped) == (1, [])


def test_broken_and_foreign_records_are_left_out_and_named(tmp_path: Path) -> None:
    saved(tmp_path, 0)
    contents = {
        "broken": b'{"kind": "umix run',
        "foreign": b'{"accuracy": 1}',
        "list": b"[1]",
        "binary": b"\xff\xfe",
        "lacking": json.dumps({"kind": "umix run record", "task": "toy"}).encode(),
    }
    for name, content in contents.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "record.json").write_bytes(content)
    (tmp_path / "folder" / "record.json").mkdir(parents=True)
    runs = load_runs(tmp_path)
    assert [run.seed for run in runs.records] == [0]
    assert len(runs.skipped) == len(contents) + 1
    assert all(sum(f"/{name}/" in message for message in runs.skipped) == 1 for name in [*contents, "folder"])
    assert all(message.endswith("; delete it and run again.") for message in runs.skipped)


def test_records_without_groups_are_loaded(tmp_path: Path) -> None:
    counts = {"hits": [[], []], "sizes": [], "class_hits": [[3], [4]], "class_sizes": [4]}
    saved(tmp_path, 0).model_copy(
        update={
            "groups": [],
            "train_sizes": [],
            "split_counts": {name: SplitCounts(**counts) for name in ("val", "test")},
        }
    ).save(tmp_path / "toy-erm-seed0")
    assert load_runs(tmp_path).skipped == []


def test_an_empty_folder_holds_no_runs(tmp_path: Path) -> None:
    assert load_runs(tmp_path).records == []


def test_a_missing_folder_and_a_single_run_are_refused(tmp_path: Path) -> None:
    saved(tmp_path, 0)
    with pytest.raises(UserError, match="There is no folder"):
        load_runs(tmp_path / "nowhere")
    with pytest.raises(UserError, match="is a single run; name the folder that holds the runs"):
        load_runs(tmp_path / "toy-erm-seed0")


def test_a_folder_of_runs_is_no_run_and_its_runs_are_named(tmp_path: Path) -> None:
    saved(tmp_path, 3)
    with pytest.raises(
        UserError, match=r"must be the folder of one run, but it holds runs: name one \(toy-erm-seed3\)"
    ):
        load_run(tmp_path)
