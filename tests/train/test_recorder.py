"""The recorder beside its fit."""

from pathlib import Path

import torch

from umix.data.task import Task
from umix.nets.mlp import MLP
from umix.train.evaluate import correctness
from umix.train.fit_settings import FitSettings
from umix.train.recorder import Recorder
from umix.train.stage import Stage


def stage_in(directory: Path) -> Stage:
    return Stage("trajectory", FitSettings(batch_size=16), seed=0, key="key", directory=directory)


def test_epoch_end_records_the_clean_predictions_of_the_net(moons: Task, tmp_path: Path) -> None:
    train = moons.splits["train"]
    net = MLP(hidden=(8,)).build(train.x[0], 2)
    recorder = Recorder.open(stage_in(tmp_path), train, record="epoch_end")
    recorder.observe(net, 0)
    wrong = (~correctness(net, train, batch_size=16)).float()
    assert torch.equal(recorder.trajectory.uncertainty(start=0, length=1), wrong)


def test_a_reopened_recorder_goes_on_after_the_checkpoint(moons: Task, tmp_path: Path) -> None:
    train = moons.splits["train"]
    net = MLP(hidden=(8,)).build(train.x[0], 2)
    first = Recorder.open(stage_in(tmp_path), train, record="epoch_end")
    for epoch in range(3):
        first.observe(net, epoch)
    again = Recorder.open(stage_in(tmp_path), train, record="epoch_end")
    again.restore(2, {})
    assert again.trajectory.epochs == 2
    again.observe(net, 2)
    assert again.trajectory.epochs == 3
