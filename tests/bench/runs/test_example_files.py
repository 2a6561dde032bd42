"""What a run writes of its training examples is what the task says of them."""

from pathlib import Path

import numpy as np
import polars
import pytest
import torch

from umix.bench.runs.example_files import training_rows
from umix.bench.runs.execute import execute
from umix.bench.spec.run_spec import RunSpec
from umix.data.groups import Groups
from umix.data.registry import load_task
from umix.data.task import Split
from umix.reports.training_examples import training_of


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


def test_groups_labels_and_inputs_are_those_of_the_task(out: Path) -> None:
    record = execute(RunSpec(task="four_moons", method="umix", settings={"epochs": 2, "length": 2}), out=out)
    train = load_task("four_moons").splits["train"]
    found = training_of(record)
    assert found is not None
    assert found.group is not None
    assert found.group.tolist() == train.group.tolist()
    assert found.label.tolist() == train.y.tolist()
    assert found.closer is not None
    assert found.closer.x is not None
    assert np.array_equal(found.closer.x, train.x[torch.from_numpy(found.closer.index)].numpy())
    most = np.sort(found.uncertainty)[::-1][:500]
    assert np.isin(np.flatnonzero(found.uncertainty > most[-1]), found.closer.index).all()
    assert found.closer.features.shape == (len(found.closer.index), 64)


def test_a_method_without_uncertainty_has_no_closer_look(out: Path) -> None:
    record = execute(RunSpec(task="four_moons", method="erm", settings={"epochs": 1}), out=out)
    assert (record.directory / "training.parquet").exists()
    assert not (record.directory / "closer.safetensors").exists()
    assert training_of(record) is None


def test_rows_of_a_table_are_known_by_their_number(tmp_path: Path) -> None:
    rows = 60
    table = polars.DataFrame({"x": range(rows), "y": ["a", "b"] * (rows // 2), "split": ["train", "val", "test"] * 20})
    table.write_csv(tmp_path / "t.csv")
    settings = {"task.label": "y", "task.split": "split", "epochs": 1, "length": 1, "eta": 1.0, "pool": "example"}
    record = execute(RunSpec(task=str(tmp_path / "t.csv"), method="umix", settings=settings), out=tmp_path / "runs")
    found = training_of(record)
    assert found is not None
    assert found.row is not None
    assert sorted(found.row.tolist()) == list(range(0, rows, 3))
    assert found.member is None


def test_groups_that_overlap_have_a_column_each() -> None:
    member = torch.tensor([[True, True], [False, True], [False, False]])
    table = training_rows(Split(torch.zeros(3, 1), torch.tensor([0, 1, 0]), Groups(member, ("a", "b"))))
    assert table.columns == ["label", "group 0", "group 1"]
    assert table.select("group 0", "group 1").to_numpy().tolist() == member.tolist()
