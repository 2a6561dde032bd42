"""What a run knows of its training examples, as its files say it; hints from trajectories written out by hand."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars
import pytest

from umix.bench.runs.example_tables import example_table, load_examples
from umix.bench.runs.record import RunRecord
from umix.reports.training_examples import (
    Hint,
    Window,
    last_epochs,
    learning_hints,
    minority_groups,
    rank_minority,
    training_of,
)
from umix.store import write_arrays

N = 10


@pytest.fixture
def run(tmp_path: Path, record: Callable[..., RunRecord]) -> RunRecord:
    made = record(0, [5, 5], "umix", classes=["no", "yes"], options={"start": 1, "length": 2})
    made.save(tmp_path)
    label = np.arange(N) % 2
    values = np.linspace(0, 1, N, dtype=np.float32)
    bits = np.packbits(np.ones((3, N), dtype=bool), axis=1)
    examples = {"label": label, "uncertainty": values, "weight": values}
    write_arrays(tmp_path / "examples.safetensors", examples, {"kind": "examples"})
    write_arrays(
        tmp_path / "trajectory.safetensors", {"correct": bits, "visited": bits}, {"kind": "trajectory", "n": str(N)}
    )
    closer = {
        "index": np.array([1, 2]),
        "features": np.zeros((2, 3), np.float16),
        "correct": np.array([True, False]),
        "prediction": np.array([0, 1]),
        "x": np.zeros((2, 4), np.float32),
    }
    write_arrays(tmp_path / "closer.safetensors", closer, {"kind": "closer"})
    polars.DataFrame({"label": label, "group": label, "row": np.arange(N)}).write_parquet(tmp_path / "training.parquet")
    return made


def test_whole_files_are_read(run: RunRecord) -> None:
    training = training_of(run)
    assert training is not None
    assert (training.n, training.window) == (N, Window(1, 2))
    assert training.correct is not None
    assert training.correct.shape == (3, N)
    examples = load_examples(run)
    assert examples.columns == ["row", "label", "group", "uncertainty", "weight"]
    assert examples["row"].to_list() == list(range(N))
    assert examples["label"].to_list() == ["no", "yes"] * (N // 2)
    assert examples["group"].to_list() == ["a", "b"] * (N // 2)


def test_classes_and_groups_that_a_method_predicts_have_names(record: Callable[..., RunRecord]) -> None:
    made = record(0, [5, 5], classes=["no", "yes"])
    rows = polars.DataFrame({"label": [0, 1], "group": [-1, 1], "file": ["x.png", "y.png"], "row": [7, 8]})
    kept = {"predicted_group": np.array([1, 0]), "biased_class": np.array([1, 1]), "environment": np.array([0, 1])}
    assert example_table(made, rows, kept).to_dict(as_series=False) == {
        "file": ["x.png", "y.png"],
        "label": ["no", "yes"],
        "group": [None, "b"],
        "environment": [0, 1],
        "predicted_group": ["b", "a"],
        "biased_class": ["yes", "yes"],
    }


def test_an_example_of_several_groups_names_them_all(record: Callable[..., RunRecord]) -> None:
    made = record(0, [5, 5], classes=["no", "yes"])
    rows = polars.DataFrame({"label": [0, 1, 1], "group 0": [True, False, False], "group 1": [True, True, False]})
    found = example_table(made, rows, {"predicted_group": np.array([0, 5, 1])})
    assert found["group"].to_list() == ["a; b", "b", None]
    assert found["predicted_group"].to_list() == [0, 5, 1]  # of other groups, which the task declares for training
    assert found["index"].to_list() == [0, 1, 2]


def test_a_window_beyond_the_recorded_epochs_is_no_window(run: RunRecord) -> None:
    other = run.model_copy(update={"plan": {**run.plan, "method": {**run.plan["method"], "length": 99}}})
    other.save(run.directory)
    training = training_of(other)
    assert training is not None
    assert training.window is None


def bits(*histories: str) -> tuple[np.ndarray, np.ndarray]:
    """``correct`` and ``visited`` [epochs, n] of histories with a letter per epoch: 1 right, 0 wrong, - not visited."""
    letters = np.array([list(history) for history in histories]).T
    return letters == "1", letters != "-"


def hint(history: str, *, start: int = 0, length: int = 4) -> Hint:
    hints = learning_hints(*bits(history), start=start, length=length)
    assert hints is not None
    return Hint(int(hints[0]))


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ("00000000", Hint.CONTRADICTED),  # wrong in the window, wrong in epochs 7 and 8
        ("00001000", Hint.CONTRADICTED),  # right once after the window: one forgetting event
        ("00001010", Hint.NONE),  # right in epoch 7: the net is not sure
        ("00010100", Hint.NONE),  # wrong in 75 % of the window, not in 90 %, and still wrong at the end
        ("00001111", Hint.LEARNED_LATE),
        ("00110011", Hint.LEARNED_LATE),  # wrong in half of the window
        ("01110011", Hint.NONE),  # wrong in a quarter of the window
        ("00001110", Hint.NONE),  # wrong in the last epoch
        ("11111111", Hint.NONE),
        ("0-000-00", Hint.CONTRADICTED),  # an epoch without a visit says nothing
        ("000000--", Hint.NONE),  # not visited at the end
        ("----0000", Hint.NONE),  # not visited in the window
    ],
)
def test_a_trajectory_of_eight_epochs_with_a_window_of_four(history: str, expected: Hint) -> None:
    assert last_epochs(8) == 2
    assert hint(history) == expected


def test_more_than_one_forgetting_event_is_not_consistent() -> None:
    assert hint("0000101000000000") == Hint.NONE
    assert hint("0000100000000000") == Hint.CONTRADICTED


def test_without_an_early_and_a_late_part_there_are_no_hints() -> None:
    assert learning_hints(*bits("00"), start=0, length=2) is None
    assert learning_hints(*bits("00000"), start=4, length=1) is None  # JTT: the window is the last epoch


def test_the_minority_is_what_is_smaller_than_average_and_empty_groups_are_none() -> None:
    assert minority_groups(np.array([90, 10, 0])).tolist() == [False, True, False]
    member = np.arange(100)[:, None] >= np.array([0, 90])
    member[90:, 0] = False
    seen = rank_minority(np.where(np.arange(100) >= 80, 1.0, 0.0), member, ["large", "small"])
    assert seen is not None
    assert seen.names == ("small",)
    assert seen.thresholds[1].precision == 0.5
    assert seen.thresholds[1].recall == 1.0
    assert rank_minority(np.zeros(100), None, []) is None
