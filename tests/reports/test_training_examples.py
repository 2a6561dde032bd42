"""What a run knows of its training examples is checked when it is read: a file that does not fit is one sentence."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

from umix.bench.runs.example_table import example_table, load_examples
from umix.bench.runs.record import RunRecord
from umix.errors import UserError
from umix.files import read_arrays, write_arrays
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


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("examples", lambda arrays, facts: arrays.pop("label"), "'label' is missing"),
        ("examples", lambda arrays, facts: arrays["label"].fill(7), "'label' must be at most 1 everywhere"),
        ("examples", lambda arrays, facts: arrays["uncertainty"].fill(np.nan), "'uncertainty' must be at least"),
        ("examples", lambda arrays, facts: arrays.update(weight=np.ones(3)), "'weight' must be real numbers [10]"),
        ("examples", lambda arrays, facts: arrays["weight"].fill(-1), "'weight' must be at least 0 everywhere"),
        (
            "examples",
            lambda arrays, facts: arrays.update(label=np.zeros((N, 1), int)),
            "'label' must be whole numbers [n]",
        ),
        ("trajectory", lambda arrays, facts: facts.pop("n"), "got those of None"),
        ("trajectory", lambda arrays, facts: facts.update(n="9" * 5000), "got those of 9"),
        ("trajectory", lambda arrays, facts: arrays.pop("visited"), "'visited' is missing"),
        (
            "trajectory",
            lambda arrays, facts: arrays.update(correct=np.ones((2, 2), np.uint8)),
            "'visited' must be bytes",
        ),
        (
            "trajectory",
            lambda arrays, facts: arrays.update(dict.fromkeys(arrays, np.ones((0, 2), np.uint8))),
            "got no epoch",
        ),
        ("closer", lambda arrays, facts: arrays["index"].fill(N), "'index' must be at most 9 everywhere"),
        ("closer", lambda arrays, facts: arrays.update(correct=np.ones(2)), "'correct' must be true or false [2]"),
        ("closer", lambda arrays, facts: arrays.update(prediction=np.array([0, 2])), "'prediction' must be at most 1"),
        ("closer", lambda arrays, facts: arrays.update(x=np.ones(3)), "'x' must be the inputs of these examples"),
    ],
    ids=range(15),
)
def test_arrays_that_do_not_fit_are_one_sentence(
    run: RunRecord, name: str, change: Callable[[dict[str, Any], dict[str, str]], object], said: str
) -> None:
    path = run.directory / f"{name}.safetensors"
    arrays, facts = read_arrays(path, kind=name)
    arrays = {key: array.copy() for key, array in arrays.items()}
    change(arrays, facts)
    write_arrays(path, arrays, facts)
    with pytest.raises(UserError) as caught:
        training_of(run)
    assert ".safetensors must " in str(caught.value)
    assert said in str(caught.value)
    assert str(caught.value).endswith("; delete the run and run it again.")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda table: table.head(3), "be about the run's 10 examples, got 3"),
        (lambda table: table.with_columns(label=9), "name classes of the run in the column 'label'"),
        (lambda table: table.with_columns(group=9), "name groups of the run in the column 'group'"),
        (lambda table: table.drop("group"), "say who is in a group in the column 'group 0'"),
        (lambda table: table.with_columns(row=polars.lit(None, polars.Int64)), "say which row every example is of"),
        (lambda table: table.with_columns(row=polars.lit("x")), "say where examples are from in the column 'row'"),
    ],
    ids=["rows", "class", "group", "no group", "no place", "place"],
)
def test_a_table_that_does_not_fit_is_one_sentence(
    run: RunRecord, change: Callable[[polars.DataFrame], polars.DataFrame], said: str
) -> None:
    path = run.directory / "training.parquet"
    change(polars.read_parquet(path)).write_parquet(path)
    with pytest.raises(UserError) as caught:
        training_of(run)
    assert str(caught.value) == f"{path} must {said}" + str(caught.value).partition(said)[2]


def test_a_window_beyond_the_recorded_epochs_is_no_window(run: RunRecord) -> None:
    other = run.model_copy(update={"plan": {**run.plan, "method": {**run.plan["method"], "length": 99}}})
    other.save(run.directory)
    training = training_of(other)
    assert training is not None
    assert training.window is None
