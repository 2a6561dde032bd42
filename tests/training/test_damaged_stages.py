"""A stage whose files are damaged is trained again, ends as if it had never been, and says so."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from umix.checkpoint_pace import EVERY_EPOCH
from umix.core.epoch_counts import Counts
from umix.models.estimators.boosted import Trees
from umix.models.net import Net
from umix.selection.halving import CandidateBatch, successive_halving
from umix.training.context import Context
from umix.training.mixup_risk import MixupRisk
from umix.training.objective import MeanRisk
from umix.training.stage import ErmStage

Make = Callable[..., Context]
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
def stopped(context: Make, tmp_path: Path) -> Path:
    """A folder with the checkpoint of a fit that was stopped after two of its four epochs."""

    def stop(epoch: int, val: object) -> None:
        if epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        context(directory=tmp_path, pace=EVERY_EPOCH, on_epoch=stop).fit(MeanRisk())
    return tmp_path


def notes_of_a_fit_that_ends_the_same(context: Make, folder: Path) -> list[str]:
    noted = Noted()
    run = context(directory=folder, progress=noted)
    result = run.fit(MeanRisk())
    assert torch.equal(parameters(result.net), parameters(context().fit(MeanRisk()).net))
    assert result.history.counts("val").epochs == 4
    assert len(run.journal.logs["fit"].rows()) == 4
    return noted.notes


def test_a_fit_with_a_torn_checkpoint_starts_again(context: Make, stopped: Path) -> None:
    path = stopped / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    (note,) = notes_of_a_fit_that_ends_the_same(context, stopped)
    assert "checkpoint.safetensors" in note
    assert note.endswith("; the stage fit starts again.")


def test_a_checkpoint_of_other_settings_is_not_resumed(context: Make, tmp_path: Path) -> None:
    context(directory=tmp_path, seed=5).fit(MeanRisk())
    (note,) = notes_of_a_fit_that_ends_the_same(context, tmp_path)
    assert "must belong to the fit fit-" in note


def test_a_whole_checkpoint_is_resumed_in_silence(context: Make, stopped: Path) -> None:
    assert notes_of_a_fit_that_ends_the_same(context, stopped) == []


@pytest.mark.parametrize("name", ["trajectory.safetensors", "checkpoint.safetensors"])
def test_a_recorded_stage_that_is_damaged_is_trained_again(context: Make, tmp_path: Path, name: str) -> None:
    expected = context(directory=tmp_path).trajectory(RECORDED).uncertainty(start=0, length=3)
    (path,) = (tmp_path / "stages").glob(f"*/{name}")
    path.write_bytes(b"torn")
    noted = Noted()
    again = context(directory=tmp_path, progress=noted)
    assert torch.equal(again.trajectory(RECORDED).uncertainty(start=0, length=3), expected)
    assert not again.journal.reports["trajectory"].reused
    assert all("the stage trajectory starts again" in note for note in noted.notes)
    assert name in noted.notes[0]


def test_a_trajectory_file_behind_its_checkpoint_is_recorded_again(context: Make, tmp_path: Path) -> None:
    trajectory = context(directory=tmp_path).trajectory(RECORDED)
    expected = trajectory.uncertainty(start=0, length=3)
    trajectory.truncate(1)
    trajectory.save(next((tmp_path / "stages").iterdir()) / "trajectory.safetensors")
    noted = Noted()
    again = context(directory=tmp_path, progress=noted)
    assert torch.equal(again.trajectory(RECORDED).uncertainty(start=0, length=3), expected)
    assert len(again.journal.logs["trajectory"].rows()) == 3
    assert "must hold the 3 epochs of the checkpoint beside it, got 1" in noted.notes[0]


def _by_hits(results: Mapping[str, Counts]) -> dict[str, float]:
    return {name: float(result.hits[-1].sum()) for name, result in results.items()}


def test_candidates_whose_counts_are_damaged_are_trained_again(context: Make, tmp_path: Path) -> None:
    def hits(run: Context) -> dict[str, np.ndarray]:
        n = len(run.splits["train"])
        batches = [
            CandidateBatch((name,), MixupRisk(weights=torch.full((n,), 1.0), sigma=0.5, alpha=0.5))
            for name in ("a", "b")
        ]
        results = successive_halving(run, batches, _by_hits, content="test")
        return {name: result.hits for name, result in results.items()}

    expected, noted = hits(context(cache=tmp_path)), Noted()
    for path in tmp_path.glob("*/selection.safetensors"):
        path.write_bytes(b"torn")
    again = hits(context(cache=tmp_path, progress=noted))
    assert all(np.array_equal(again[name], expected[name]) for name in expected)
    assert noted.notes
    assert all(note.endswith("; its candidates are trained again.") for note in noted.notes)


def test_parts_of_a_cross_fit_that_are_damaged_are_fitted_again(
    context: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("umix.training.cross_fit.remove", lambda path: None)  # as if it was killed before the end
    net = Trees(min_leaf=2, folds=2)
    expected = context(net=net, directory=tmp_path).trajectory(RECORDED).uncertainty(start=0, length=3)
    for path in (tmp_path / "stages").glob("*/*.safetensors"):
        path.write_bytes(b"torn")
    noted = Noted()
    again = context(net=net, directory=tmp_path, progress=noted).trajectory(RECORDED)
    assert torch.equal(again.uncertainty(start=0, length=3), expected)
    assert [note.rpartition("; ")[2] for note in noted.notes] == [
        "the stage trajectory starts again.",
        "this part is fitted again.",
        "this part is fitted again.",
    ]


def test_an_estimator_with_a_damaged_checkpoint_is_fitted_again(context: Make, tmp_path: Path) -> None:
    net = Trees(min_leaf=2)
    first = context(net=net, directory=tmp_path)
    expected = first.logits(first.fit(MeanRisk()).net, "test")
    (tmp_path / "checkpoint.safetensors").write_bytes(b"torn")
    noted = Noted()
    again = context(net=net, directory=tmp_path, progress=noted)
    result = again.fit(MeanRisk())
    assert torch.equal(again.logits(result.net, "test"), expected)
    assert result.history.counts("val").epochs == 4
    (note,) = noted.notes
    assert note.endswith("; the stage fit starts again.")
