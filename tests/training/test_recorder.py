"""The recorder beside its fit."""

from pathlib import Path

import torch

from umix.data.task import Task
from umix.models.mlp import MLP
from umix.training.evaluate import correctness
from umix.training.fit_settings import FitSettings
from umix.training.recorder import Recorder
from umix.training.stage import Stage
from umix.training.trajectory import Trajectory


def stage_in(directory: Path) -> Stage:
    return Stage("trajectory", FitSettings(batch_size=16), seed=0, key="key", directory=directory)


def test_epoch_end_records_the_clean_predictions_of_the_net(moons: Task, tmp_path: Path) -> None:
    train, val = moons.splits["train"], moons.splits["val"]
    net = MLP(hidden=(8,)).build(train.x[0], 2)
    recorder = Recorder.open(stage_in(tmp_path), {"train": train, "val": val}, record="epoch_end")
    recorder.observe(net, 0)
    wrong, wrong_val = ((~correctness(net, split, batch_size=16)).float() for split in (train, val))
    assert torch.equal(recorder.trajectory.uncertainty(start=0, length=1), wrong)
    assert torch.equal(recorder.trajectory.val_uncertainty(start=0, length=1), wrong_val)


def test_a_reopened_recorder_goes_on_after_the_checkpoint(moons: Task, tmp_path: Path) -> None:
    train, val = moons.splits["train"], moons.splits["val"]
    net = MLP(hidden=(8,)).build(train.x[0], 2)
    first = Recorder.open(stage_in(tmp_path), {"train": train, "val": val}, record="epoch_end")
    for epoch in range(3):
        first.observe(net, epoch)
    first.write()
    again = Recorder.open(stage_in(tmp_path), {"train": train, "val": val}, record="epoch_end")
    again.restore(2, {})
    assert (again.trajectory.epochs, again.trajectory.val.epochs) == (2, 2)
    again.observe(net, 2)
    assert (again.trajectory.epochs, again.trajectory.val.epochs) == (3, 3)


def test_test_examples_are_recorded_where_they_are_given_and_survive_the_way_to_disk(
    moons: Task, tmp_path: Path
) -> None:
    splits = moons.splits
    net = MLP(hidden=(8,)).build(splits["train"].x[0], 2)
    recorder = Recorder.open(stage_in(tmp_path), splits, record="epoch_end", test=splits["test"])
    for epoch in range(2):
        recorder.observe(net, epoch)
    recorder.write()
    found = Trajectory.load(tmp_path / "trajectory.safetensors")
    wrong = (~correctness(net, splits["test"], batch_size=16)).float()
    assert torch.equal(found.test_uncertainty(start=0, length=2), wrong)
    found.truncate(1)
    assert found.test.epochs == 1
    plain = Recorder.open(stage_in(tmp_path / "plain"), splits, record="epoch_end")
    assert plain.trajectory.test_uncertainty(start=0, length=1) is None
