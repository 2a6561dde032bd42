"""A stage whose files are damaged is trained again, ends as if it had never been, and says so."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from umix.checkpoint_pace import EVERY_EPOCH
from umix.methods.parts.mixup_risk import MixupRisk
from umix.nets.estimators.boosted import Trees
from umix.nets.net import Net
from umix.training.objective import MeanRisk
from umix.training.race import Lane, RaceResult, race
from umix.training.stage import ErmStage
from umix.training.trainer import Trainer

Make = Callable[..., Trainer]
RECORDED = ErmStage("trajectory", 3, record="online")


class Noted:
    """Progress that keeps the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def start(self, stage: str, *, total: int, done: int) -> None: ...

    def advance(self, steps: int) -> None: ...

    def finish(self) -> None: ...

    def note(self, message: str) -> None:
        self.notes.append(message)


def parameters(net: Net) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in net.parameters()])


@pytest.fixture
def stopped(trainer: Make, tmp_path: Path) -> Path:
    """A folder with the checkpoint of a fit that was stopped after two of its four epochs."""

    def stop(epoch: int, val: object) -> None:
        if epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trainer(directory=tmp_path, pace=EVERY_EPOCH, on_epoch=stop).fit(MeanRisk())
    return tmp_path


def notes_of_a_fit_that_ends_the_same(trainer: Make, folder: Path) -> list[str]:
    noted = Noted()
    run = trainer(directory=folder, progress=noted)
    assert torch.equal(parameters(run.fit(MeanRisk())), parameters(trainer().fit(MeanRisk())))
    assert run.history.counts("val").epochs == 4
    assert len(run.logs["fit"].rows()) == 4
    return noted.notes


def test_a_fit_with_a_torn_checkpoint_starts_again(trainer: Make, stopped: Path) -> None:
    path = stopped / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    (note,) = notes_of_a_fit_that_ends_the_same(trainer, stopped)
    assert "checkpoint.safetensors" in note
    assert note.endswith("; the stage fit starts again.")


def test_a_checkpoint_of_other_settings_is_not_resumed(trainer: Make, tmp_path: Path) -> None:
    trainer(directory=tmp_path, seed=5).fit(MeanRisk())
    (note,) = notes_of_a_fit_that_ends_the_same(trainer, tmp_path)
    assert "must belong to the fit fit-" in note


def test_a_whole_checkpoint_is_resumed_in_silence(trainer: Make, stopped: Path) -> None:
    assert notes_of_a_fit_that_ends_the_same(trainer, stopped) == []


@pytest.mark.parametrize("name", ["trajectory.safetensors", "checkpoint.safetensors"])
def test_a_recorded_stage_that_is_damaged_is_trained_again(trainer: Make, tmp_path: Path, name: str) -> None:
    expected = trainer(directory=tmp_path).trajectory(RECORDED).uncertainty(start=0, length=3)
    (path,) = (tmp_path / "stages").glob(f"*/{name}")
    path.write_bytes(b"torn")
    noted = Noted()
    again = trainer(directory=tmp_path, progress=noted)
    assert torch.equal(again.trajectory(RECORDED).uncertainty(start=0, length=3), expected)
    assert not again.reports["trajectory"].reused
    assert all("the stage trajectory starts again" in note for note in noted.notes)
    assert name in noted.notes[0]


def test_a_trajectory_file_behind_its_checkpoint_is_recorded_again(trainer: Make, tmp_path: Path) -> None:
    trajectory = trainer(directory=tmp_path).trajectory(RECORDED)
    expected = trajectory.uncertainty(start=0, length=3)
    trajectory.truncate(1)
    trajectory.save(next((tmp_path / "stages").iterdir()) / "trajectory.safetensors")
    noted = Noted()
    again = trainer(directory=tmp_path, progress=noted)
    assert torch.equal(again.trajectory(RECORDED).uncertainty(start=0, length=3), expected)
    assert len(again.logs["trajectory"].rows()) == 3
    assert "must hold the 3 epochs of the checkpoint beside it, got 1" in noted.notes[0]


def _by_hits(results: Mapping[str, RaceResult]) -> dict[str, float]:
    return {name: float(result.counts.hits[-1].sum()) for name, result in results.items()}


def test_candidates_whose_counts_are_damaged_are_trained_again(trainer: Make, tmp_path: Path) -> None:
    def hits(run: Trainer) -> dict[str, np.ndarray]:
        n = len(run.splits["train"])
        lanes = [Lane((name,), MixupRisk(weights=torch.full((n,), 1.0), sigma=0.5, alpha=0.5)) for name in ("a", "b")]
        results = race(run, lanes, _by_hits, content="test")
        return {name: result.counts.hits for name, result in results.items()}

    expected, noted = hits(trainer(cache=tmp_path)), Noted()
    for path in tmp_path.glob("*/race.safetensors"):
        path.write_bytes(b"torn")
    again = hits(trainer(cache=tmp_path, progress=noted))
    assert all(np.array_equal(again[name], expected[name]) for name in expected)
    assert noted.notes
    assert all(note.endswith("; its candidates are trained again.") for note in noted.notes)


def test_parts_of_a_cross_fit_that_are_damaged_are_fitted_again(
    trainer: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("umix.training.recorder.remove", lambda path: None)  # as if it was killed before the end
    net = Trees(min_leaf=2, folds=2)
    expected = trainer(net=net, directory=tmp_path).trajectory(RECORDED).uncertainty(start=0, length=3)
    for path in (tmp_path / "stages").glob("*/*.safetensors"):
        path.write_bytes(b"torn")
    noted = Noted()
    again = trainer(net=net, directory=tmp_path, progress=noted).trajectory(RECORDED)
    assert torch.equal(again.uncertainty(start=0, length=3), expected)
    assert [note.rpartition("; ")[2] for note in noted.notes] == [
        "the stage trajectory starts again.",
        "this part is fitted again.",
        "this part is fitted again.",
    ]


def test_an_estimator_with_a_damaged_checkpoint_is_fitted_again(trainer: Make, tmp_path: Path) -> None:
    net = Trees(min_leaf=2)
    first = trainer(net=net, directory=tmp_path)
    expected = first.logits(first.fit(MeanRisk()), "test")
    (tmp_path / "checkpoint.safetensors").write_bytes(b"torn")
    noted = Noted()
    again = trainer(net=net, directory=tmp_path, progress=noted)
    assert torch.equal(again.logits(again.fit(MeanRisk()), "test"), expected)
    assert again.history.counts("val").epochs == 4
    (note,) = noted.notes
    assert note.endswith("; the stage fit starts again.")
