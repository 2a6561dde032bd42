"""Folders of records."""

import gc
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from umix.bench.runs.record import RunRecord
from umix.bench.runs.split_counts import SplitCounts
from umix.bench.runs.store import load_runs
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
    assert gc.isenabled()


#: What a record of one group says of two group columns, which have a margin each.
OF_TWO_COLUMNS = {
    "group_columns": ["y", "a", "b"],
    "group_parts": [["0", "1", "2"]],
    "group_values": [["0"], ["1"], ["2"]],
    "train_margin_sizes": [1, 1],
}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda record: record["split_counts"].pop("val"), "split_counts must hold val and test, got test"),
        (lambda record: record["split_counts"]["test"].update(hits=[]), "must have counts of the same epochs"),
        (lambda record: record["split_counts"]["test"].update(hits=[[3], [3]]), "must have counts of the same epochs"),
        (lambda record: record["split_counts"]["val"].update(tail_losses=[0.5, 0.5]), "counts of the same epochs"),
        (lambda record: record["split_counts"]["val"].update(quintile_rates=[[0.5]]), "each group, class and fifth"),
        (
            lambda record: record["split_counts"]["val"].update(class_hits=[[1], [1, 2]]),
            "must have counts of the same epochs",
        ),
        (lambda record: record["split_counts"]["val"].update(class_hits=[[2**70]]), "hits of val must lie between"),
        (
            lambda record: record.update(groups=["a", "b"], train_sizes=[1, 1]),
            "must have counts for every group, got 1 for 2",
        ),
        (lambda record: record.update(train_sizes=[]), "train_sizes must be one for every group, got 0 for 1"),
        (
            lambda record: record["split_counts"]["val"].update(hits=[[5]]),
            "hits of val must lie between 0 and the sizes",
        ),
        (lambda record: record["split_counts"]["test"].update(class_hits=[[-1]]), "hits of test must lie between"),
        (lambda record: record.update(seed=-1), "seed must be"),
        (lambda record: record.update(seed="0"), "seed must be valid: input should be a valid integer, got '0'"),
        (lambda record: record.update(seed=2**40), "seed must be"),
        (lambda record: record.update(min_group=-5), "min_group must be"),
        (lambda record: record.update(later="field"), "later must be valid: extra inputs are not permitted"),
        (lambda record: record.pop("train_sizes"), "train_sizes must be valid: field required"),
        (lambda record: record["plan"].pop("net"), "plan.net must be valid: field required"),
        (lambda record: record["plan"].update(task=[]), "plan.task must be valid"),
        (lambda record: record["plan"]["task"].update(drop=[[]]), "plan.task.drop.0 must be valid"),
        (lambda record: record["plan"]["method"].update(name=3), "plan.method.name must be valid"),
        (lambda record: record["plan"].update(judge={"decide": "dice"}), "plan.judge.decide must be valid"),
        (lambda record: record.update(decisions={"standings": [{}]}), "decisions.standings.0.candidate must be valid"),
        (lambda record: record.update(input_dtype="nope"), "input_dtype must be valid"),
        (lambda record: record.update(input_shape=[-1]), "input_shape.0 must be valid"),
        (lambda record: record.update(input_shape=[2**20] * 3), "input_shape must be at most"),
        (lambda record: record.update(input_categories=[3]), "input_categories must be one for every number"),
        (
            lambda record: record.update(groups=["a", "a"], train_sizes=[1, 1]),
            "every group must have a name of its own",
        ),
        (lambda record: record.update(classes=["only", "only"]), "every class must have a name of its own"),
        (lambda record: record.update(classes=[]), "classes must be valid"),
        (
            lambda record: record.update(group_columns=["y"], group_parts=[]),
            "group_parts must have a value of every one",
        ),
        (lambda record: record.update(group_columns=["y"], group_parts=[["a", "b"]]), "group_parts must have a value"),
        (
            lambda record: record.update(group_columns=["y", "a"], group_parts=[["0", "1"]], group_values=[["0"]]),
            "group_values must be those of every one of group_columns",
        ),
        (
            lambda record: record.update({**OF_TWO_COLUMNS, "train_margin_sizes": []}),
            "train_margin_sizes must be one for",
        ),
        (lambda record: record.update(OF_TWO_COLUMNS), "must have counts for every margin, got 0 for 2"),
        (
            lambda record: [
                record.update(OF_TWO_COLUMNS),
                *(
                    split.update(margin_sizes=[4, 4], margin_hits=[[4, 5]], margin_composition=[[4], [4]])
                    for split in record["split_counts"].values()
                ),
            ],
            "the margins of val must have hits between 0 and the sizes",
        ),
        (lambda record: record.update(train_sizes=[-9]), "train_sizes.0 must be valid"),
        (lambda record: record["split_counts"].update(more=record["split_counts"]["val"]), "must hold val and test"),
        (lambda record: record["split_counts"]["val"].update(sizes=[99]), "a group of val must have at most the 4"),
        (lambda record: record["split_counts"]["val"].update(class_sizes=[2**60]), "and these be at most"),
        (lambda record: record["split_counts"]["val"].update(composition=[[3]]), "composition of val must divide"),
        (lambda record: record["split_counts"]["val"].update(recall_hits=[[[3]]]), "recall_hits of val must lie"),
        (
            lambda record: record["split_counts"]["val"].update(composition=[[4]], recall_hits=[[[5]]]),
            "recall_hits of val must lie between 0 and the composition",
        ),
        (
            lambda record: record["split_counts"]["val"].update(quintile_rates=[[0, 0, 0, 0, 7]]),
            "quintile_rates of val",
        ),
        (
            lambda record: record["split_counts"]["val"].update(tail_losses=[float("nan")]),
            "tail_losses.0 must be valid",
        ),
        (
            lambda record: record.update(stages={"fit": {"key": "k", "epochs": "ten", "seconds": 1.0, "reused": True}}),
            "stages.fit.epochs must be valid",
        ),
    ],
    ids=range(46),
)
def test_a_record_that_does_not_fit_together_is_left_out_and_named(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], reason: str
) -> None:
    for seed in range(2):
        saved(tmp_path, seed)
    path = tmp_path / "toy-erm-seed0" / "record.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    runs = load_runs(tmp_path)
    assert [run.seed for run in runs.records] == [1]
    (message,) = runs.skipped
    assert "record.json must be a run record of this version of umix (" in message
    assert reason in message
    assert message.endswith("; delete it and run again.")


def test_records_without_groups_fit_together(tmp_path: Path) -> None:
    counts = {"hits": [[], []], "sizes": [], "class_hits": [[3], [4]], "class_sizes": [4]}
    saved(tmp_path, 0).model_copy(
        update={
            "groups": [],
            "train_sizes": [],
            "split_counts": {name: SplitCounts(**counts) for name in ("val", "test")},
        }
    ).save(tmp_path / "toy-erm-seed0")
    assert load_runs(tmp_path).skipped == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "must be a whole run record, but it cannot be read (EOF"),
        (b"[" * 1000, "must be a whole run record, but it cannot be read (recursion limit"),
        (b'{"kind": "umix run record", "seed": ' + b"9" * 5000 + b"}", "must be a whole run record"),
        (b'{"kind": "umix weights"}', "must be a run record written by umix; delete or move it."),
        (b"3", "must be a run record written by umix; delete or move it."),
    ],
    ids=["empty", "nested", "digits", "another kind", "a number"],
)
def test_what_is_no_record_is_named_with_the_reason(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "run" / "record.json"
    path.parent.mkdir()
    path.write_bytes(content)
    (message,) = load_runs(tmp_path).skipped
    assert message.startswith(f"{path} {reason}")


def test_a_pipe_in_the_place_of_a_record_keeps_nobody_waiting(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    os.mkfifo(tmp_path / "run" / "record.json")
    (message,) = load_runs(tmp_path).skipped
    assert "must be a run record file, but it is neither a file nor a folder" in message


def test_an_empty_folder_holds_no_runs(tmp_path: Path) -> None:
    assert load_runs(tmp_path).records == []


def test_a_missing_folder_and_a_single_run_are_refused(tmp_path: Path) -> None:
    saved(tmp_path, 0)
    with pytest.raises(UserError, match="There is no folder"):
        load_runs(tmp_path / "nowhere")
    with pytest.raises(UserError, match="is a single run; name the folder that holds the runs"):
        load_runs(tmp_path / "toy-erm-seed0")
