"""What a run knows of its training examples is checked when it is read: a file that does not fit is one sentence."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars
import pytest

from umix.bench.runs.example_tables import example_table, load_examples
from umix.bench.runs.record import RunRecord
from umix.files import write_arrays
from umix.reports.training_examples import Window, training_of

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
