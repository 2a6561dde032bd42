"""The table of a run's epochs."""

from pathlib import Path

import numpy as np
import pytest

from umix.bench.runs.epoch_table import EpochRow, read_epochs, write_epochs
from umix.bench.runs.execute import execute
from umix.bench.runs.record import RunRecord
from umix.bench.spec.run_spec import RunSpec
from umix.core.evaluation import worst_unit
from umix.errors import UserError
from umix.run_folder import EPOCHS
from umix.store import read_tensors
from umix.training.trajectory import Trajectory

SETTINGS = {"epochs": 3, "length": 2, "sizes": [60, 10, 10, 60], "eval_size": 20, "net.hidden": [8]}


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    spec = RunSpec(task="four_moons", method="umix", settings=SETTINGS)
    return execute(spec, out=tmp_path_factory.mktemp("epochs"))


def values(record: RunRecord, **wanted: str) -> dict[tuple[int, str], EpochRow]:
    rows = [row for row in read_epochs(record.directory) if all(getattr(row, k) == v for k, v in wanted.items())]
    assert len({(row.epoch, row.name) for row in rows}) == len(rows), "a number is there twice"
    return {(row.epoch, row.name): row for row in rows}


@pytest.mark.parametrize("split", ["val", "test"])
def test_rates_of_every_epoch_are_those_of_the_record(record: RunRecord, split: str) -> None:
    counts = record.counts[split]
    groups, lowest = (values(record, stage="fit", split=split, measure=m) for m in ("group_rate", "worst"))
    for epoch in range(3):
        assert lowest[epoch, ""].value == worst_unit(counts.units(epoch)).rate
        for g, name in enumerate(record.groups):
            row = groups[epoch, name]
            assert (row.hits, row.size) == (counts.hits[epoch, g], counts.sizes[g])
            assert row.value == counts.hits[epoch, g] / counts.sizes[g]


def test_training_rates_of_the_first_stage_come_from_its_trajectory(record: RunRecord) -> None:
    trajectory = Trajectory.load(record.directory / "trajectory.safetensors")
    average = values(record, stage="trajectory", split="train", measure="average")
    wrong = [float(trajectory.uncertainty(start=epoch, length=1).mean()) for epoch in range(2)]
    assert [average[epoch, ""].value for epoch in range(2)] == pytest.approx([1 - share for share in wrong])
    groups = values(record, stage="trajectory", split="train", measure="group_rate")
    assert sum(groups[1, name].hits or 0 for name in record.groups) == round(average[1, ""].value * 140)


def test_every_stage_has_risk_rate_and_seconds_and_the_fit_its_weights(record: RunRecord) -> None:
    w = read_tensors(record.directory / "examples.safetensors", kind="examples")[0]["weight"].double().numpy()
    ess = values(record, stage="fit", measure="effective_sample_size")
    assert [ess[epoch, ""].value for epoch in range(3)] == pytest.approx([np.sum(w) ** 2 / np.sum(w**2)] * 3)
    for stage, epochs in (("trajectory", 2), ("fit", 3)):
        for measure in ("risk", "learning_rate", "seconds"):
            assert len(values(record, stage=stage, measure=measure)) == epochs
    assert len(values(record, stage="fit", measure="lambda")) == 3
    assert not values(record, stage="trajectory", measure="lambda")


def test_a_method_that_fits_no_final_net_has_its_reference_and_one_count(tmp_path: Path) -> None:
    settings = {key: value for key, value in SETTINGS.items() if key != "length"}
    record = execute(RunSpec(task="four_moons", method="dfr", settings=settings), out=tmp_path)
    assert len(values(record, stage="reference", measure="risk")) == 3
    assert len(values(record, stage="fit", split="test", measure="average")) == 1


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    rows = [
        EpochRow("fit", 0, "train", "risk", 0.1 + 0.2),
        EpochRow("fit", 0, "train", "risk", float("inf")),
        EpochRow("fit", 1, "val", "group_rate", 0.5, 'a, "b"\nc', 1, 2),
    ]
    write_epochs(tmp_path, rows)
    assert read_epochs(tmp_path) == rows


def test_a_table_that_is_missing_or_damaged_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^There is no table at .*epochs\.csv\.$"):
        read_epochs(tmp_path)
    (tmp_path / EPOCHS).write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"epochs\.csv is damaged \(KeyError: 'stage'\); delete it and run again\.$"):
        read_epochs(tmp_path)
