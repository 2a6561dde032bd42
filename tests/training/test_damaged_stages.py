"""A stage whose files are damaged is trained again, ends as if it had never been, and says so."""

import json
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from umix.checkpoint_pace import EVERY_EPOCH
from umix.data.task import Task
from umix.errors import UserError
from umix.files import read_tensors, write_tensors
from umix.methods.parts.mixup_risk import MixupRisk
from umix.nets.estimators.trees import Trees
from umix.nets.mlp import MLP
from umix.nets.net import Net
from umix.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from umix.training.epoch_log import EpochLog
from umix.training.fit_settings import FitSettings
from umix.training.objective import MeanRisk
from umix.training.race import Lane, race
from umix.training.race_counts import RaceResult
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


def rewritten(path: Path, kind: str, change: Callable[[dict[str, Any], dict[str, Any]], object]) -> None:
    """Change tensors and metadata of a file, and write it again as a whole one."""
    tensors, metadata = read_tensors(path, kind=kind)
    change(tensors, metadata)
    write_tensors(path, tensors, metadata)


def of_optimizer(change: Callable[[dict[str, Any]], object]) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def apply(tensors: dict[str, Any], metadata: dict[str, Any]) -> None:
        settings = json.loads(metadata["optimizer"])
        change(settings)
        metadata["optimizer"] = json.dumps(settings)

    return apply


CHANGES: dict[str, Callable[[dict[str, Any], dict[str, Any]], object]] = {
    "epochs that are text": lambda tensors, metadata: metadata.update(epochs="three"),
    "epochs of many digits": lambda tensors, metadata: metadata.update(epochs="9" * 5000),
    "no epochs": lambda tensors, metadata: metadata.pop("epochs"),
    "more epochs": lambda tensors, metadata: metadata.update(epochs="4"),
    "another fit": lambda tensors, metadata: metadata.update(fit="fit-0"),
    "a tensor less": lambda tensors, metadata: tensors.pop("net/head.bias"),
    "a tensor more": lambda tensors, metadata: tensors.update({"net/more": torch.ones(1)}),
    "a foreign part": lambda tensors, metadata: tensors.update(nope=torch.ones(1)),
    "another shape": lambda tensors, metadata: tensors.update({"net/head.bias": torch.ones(3)}),
    "another type": lambda tensors, metadata: tensors.update({"net/head.bias": torch.ones(2, dtype=torch.int64)}),
    "no optimiser": lambda tensors, metadata: metadata.pop("optimizer"),
    "an optimiser of text": lambda tensors, metadata: metadata.update(optimizer="nope"),
    "an optimiser nested deeply": lambda tensors, metadata: metadata.update(optimizer="[" * 5000),
    "an optimiser without numbers": of_optimizer(lambda settings: settings.pop("numbers")),
    "numbers that are a list": of_optimizer(lambda settings: settings.update(numbers=[1])),
    "a state that lacks a part": lambda tensors, metadata: tensors.pop("optimizer/1/exp_avg"),
    "a parameter without a state": lambda tensors, metadata: [
        tensors.pop(name) for name in list(tensors) if name.startswith("optimizer/1/")
    ],
    "a state of no parameter": lambda tensors, metadata: tensors.update({"optimizer/9/exp_avg": torch.ones(1)}),
    "a state of another shape": lambda tensors, metadata: tensors.update({"optimizer/1/exp_avg": torch.ones(1)}),
    "a state that is unknown": lambda tensors, metadata: tensors.update({"state/q": torch.ones(1)}),
    "fewer epochs counted": lambda tensors, metadata: tensors.update(
        {"history/val/hits": tensors["history/val/hits"][:1].clone()}
    ),
    "more hits than examples": lambda tensors, metadata: tensors["history/val/hits"].fill_(10**6),
    "negative hits": lambda tensors, metadata: tensors["history/test/class_hits"].fill_(-1),
    "hits that are real numbers": lambda tensors, metadata: tensors.update(
        {"history/val/hits": tensors["history/val/hits"].double()}
    ),
    "decisions that contradict the hits": lambda tensors, metadata: tensors["history/val/decided_hits"].zero_(),
    "a log of another shape": lambda tensors, metadata: tensors.update({"history/epochs/measures": torch.ones(3)}),
}


def made(task: Task, **changes: Any) -> Trainer:
    settings = FitSettings(epochs=4, lr=0.05, batch_size=32, optimizer="adamw")
    return Trainer(task, MLP(hidden=(16,)), settings, pace=EVERY_EPOCH, **changes)


@pytest.fixture(scope="module")
def kept(moons: Task, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Tensor]:
    """A folder with the checkpoint of a fit that was stopped, and the weights that the whole fit ends with."""

    def stop(epoch: int, val: object) -> None:
        if epoch == 2:
            raise KeyboardInterrupt

    folder = tmp_path_factory.mktemp("stopped")
    with pytest.raises(KeyboardInterrupt):
        made(moons, directory=folder, on_epoch=stop).fit(MeanRisk())
    return folder, parameters(made(moons).fit(MeanRisk()))


@pytest.fixture
def stopped(kept: tuple[Path, Tensor], tmp_path: Path) -> tuple[Path, Tensor]:
    shutil.copytree(kept[0], tmp_path / "run")
    return tmp_path / "run", kept[1]


def ends_the_same(task: Task, folder: Path, expected: Tensor) -> str:
    """The one warning of a fit in ``folder``, which must end with the ``expected`` weights."""
    noted = Noted()
    run = made(task, directory=folder, progress=noted)
    assert torch.equal(parameters(run.fit(MeanRisk())), expected)
    assert run.history.counts("val").epochs == 4
    assert len(run.logs["fit"].rows()) == 4
    (note,) = noted.notes
    assert note.endswith("; the stage fit starts again.")
    return note


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_damaged_checkpoint_is_refused_before_anything_is_restored(
    moons: Task, stopped: tuple[Path, Tensor], change: Callable[[dict[str, Any], dict[str, Any]], object]
) -> None:
    path, run = stopped[0] / "checkpoint.safetensors", made(moons)
    rewritten(path, "checkpoint", change)
    net, log = run.fresh_net(), EpochLog()
    before, optimizer = parameters(net).clone(), run.settings.make_optimizer(net)

    def restore(found: Checkpoint) -> None:
        log.restore(found.epochs, found.history)
        run.history.restore(found.epochs, found.history)

    key = run.key("fit", run.settings)
    with pytest.raises(UserError):
        load_checkpoint(path, fit=key, net=net, optimizer=optimizer, state={}, restore=restore)
    assert torch.equal(parameters(net), before)
    assert not optimizer.state_dict()["state"]
    assert run.history.counts("val").epochs == 0


def test_whole_numbers_of_a_state_that_are_classes_stay_classes(moons: Task, tmp_path: Path) -> None:
    run, state = made(moons), {"label": moons.splits["train"].y.clone(), "step": torch.tensor(0)}
    net = run.fresh_net()
    optimizer, path = run.settings.make_optimizer(net), tmp_path / "checkpoint.safetensors"
    for label, fits in ((state["label"], True), (state["label"] + 1, False)):
        checkpoint = Checkpoint(1, {"label": label, "step": torch.tensor(7)}, {})
        save_checkpoint(path, fit="fit", checkpoint=checkpoint, net=net, optimizer=optimizer)
        load = partial(load_checkpoint, path, fit="fit", net=net, optimizer=optimizer, state=state)
        if fits:
            assert int(load(restore=lambda found: None).state["step"]) == 7
        else:
            with pytest.raises(UserError, match="'label' must be at most 1 everywhere"):
                load(restore=lambda found: None)


@pytest.mark.parametrize("content", [b"", b"torn", b"{}" * 100])
def test_a_fit_with_a_torn_checkpoint_starts_again(moons: Task, stopped: tuple[Path, Tensor], content: bytes) -> None:
    folder, expected = stopped
    (folder / "checkpoint.safetensors").write_bytes(content)
    assert "checkpoint.safetensors must be a whole checkpoint file" in ends_the_same(moons, folder, expected)


def test_a_fit_whose_counts_are_damaged_starts_again_and_counts_every_epoch_once(
    moons: Task, stopped: tuple[Path, Tensor]
) -> None:
    folder, expected = stopped
    rewritten(folder / "checkpoint.safetensors", "checkpoint", CHANGES["negative hits"])
    assert "'test/class_hits' must be at least 0" in ends_the_same(moons, folder, expected)


def test_a_checkpoint_of_other_settings_is_not_gone_on_with(
    moons: Task, kept: tuple[Path, Tensor], tmp_path: Path
) -> None:
    made(moons, directory=tmp_path, seed=5).fit(MeanRisk())
    assert "must belong to the fit fit-" in ends_the_same(moons, tmp_path, kept[1])


def test_a_fit_whose_kept_weights_are_damaged_starts_again(moons: Task, stopped: tuple[Path, Tensor]) -> None:
    folder, expected = stopped
    for path in (folder / "weights").iterdir():
        rewritten(path, "weights", lambda tensors, metadata: tensors.pop("head.bias"))
    assert "must hold the weights of the run's net, but 'head.bias' is missing" in ends_the_same(
        moons, folder, expected
    )


def test_a_whole_checkpoint_is_gone_on_with_in_silence(moons: Task, stopped: tuple[Path, Tensor]) -> None:
    folder, expected = stopped
    noted = Noted()
    run = made(moons, directory=folder, progress=noted)
    assert torch.equal(parameters(run.fit(MeanRisk())), expected)
    assert noted.notes == []


def test_a_folder_in_the_place_of_a_checkpoint_is_refused_before_anything_is_trained(
    trainer: Make, tmp_path: Path
) -> None:
    (tmp_path / "checkpoint.safetensors").mkdir()
    with pytest.raises(UserError, match=r"checkpoint\.safetensors must be a checkpoint file, but it is a folder"):
        trainer(directory=tmp_path).fit(MeanRisk())
    assert not (tmp_path / "weights").exists()


@pytest.mark.parametrize("name", ["trajectory.safetensors", "checkpoint.safetensors"])
@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_bytes(b"torn"),
        lambda path: save_file(load_file(path), path),
        lambda path: rewritten(path, path.stem, lambda tensors, metadata: metadata.update(n="many", epochs="many")),
        lambda path: (
            rewritten(path, path.stem, lambda tensors, metadata: [one.zero_() for one in tensors.values()])
            if path.stem == "trajectory"
            else path.write_bytes(b"")
        ),
    ],
    ids=["torn", "no metadata", "numbers that are text", "nobody was seen"],
)
def test_a_recorded_stage_that_is_damaged_is_trained_again(
    trainer: Make, tmp_path: Path, name: str, change: Callable[[Path], object]
) -> None:
    expected = trainer(directory=tmp_path).trajectory(RECORDED).uncertainty(start=0, length=3)
    (path,) = (tmp_path / "stages").glob(f"*/{name}")
    change(path)
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
    assert torch.equal(
        trainer(directory=tmp_path, progress=noted).trajectory(RECORDED).uncertainty(start=0, length=3), expected
    )
    assert "must hold the 3 epochs of the checkpoint beside it, got 1" in noted.notes[0]


def _by_hits(results: Mapping[str, RaceResult]) -> dict[str, float]:
    return {name: float(result.counts.hits[-1].sum()) for name, result in results.items()}


@pytest.mark.parametrize(
    "change",
    [
        lambda tensors, metadata: tensors.pop("race/hits"),
        lambda tensors, metadata: tensors.update({"race/hits": tensors["race/hits"][:1].clone()}),
        lambda tensors, metadata: tensors["race/hits"].fill_(10**6),
        lambda tensors, metadata: metadata.update(epochs="all"),
    ],
    ids=["no hits", "fewer epochs", "more hits than examples", "epochs that are text"],
)
def test_candidates_whose_counts_are_damaged_are_trained_again(
    trainer: Make, tmp_path: Path, change: Callable[[dict[str, Any], dict[str, Any]], object]
) -> None:
    def hits(run: Trainer) -> dict[str, np.ndarray]:
        n = len(run.splits["train"])
        lanes = [Lane((name,), MixupRisk(weights=torch.full((n,), 1.0), sigma=0.5, alpha=0.5)) for name in ("a", "b")]
        found = race(run, lanes, _by_hits, content="test")
        return {name: result.counts.hits for name, result in found.items()}

    expected, noted = hits(trainer(cache=tmp_path)), Noted()
    for path in tmp_path.glob("*/race.safetensors"):
        rewritten(path, "race", change)
    again = hits(trainer(cache=tmp_path, progress=noted))
    assert all(np.array_equal(again[name], expected[name]) for name in expected)
    assert noted.notes
    assert all(note.endswith("; its candidates are trained again.") for note in noted.notes)


def test_parts_of_a_cross_fit_that_are_damaged_are_fitted_again(
    trainer: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("umix.training.cross_fit.remove", lambda path: None)  # as if it was killed before the end
    net = Trees(min_leaf=2, folds=2)
    expected = trainer(net=net, directory=tmp_path).trajectory(RECORDED).uncertainty(start=0, length=3)
    (whole,) = (tmp_path / "stages").glob("*/trajectory.safetensors")
    whole.write_bytes(b"torn")
    first, second = sorted((tmp_path / "stages").glob("*/fold-*.safetensors"))
    rewritten(first, "fold", lambda tensors, metadata: tensors.update(train=tensors["train"][:, :3].clone()))
    rewritten(second, "fold", lambda tensors, metadata: tensors.pop("val"))
    noted = Noted()
    again = trainer(net=net, directory=tmp_path, progress=noted).trajectory(RECORDED)
    assert torch.equal(again.uncertainty(start=0, length=3), expected)
    assert [note.rpartition("; ")[2] for note in noted.notes] == [
        "the stage trajectory starts again.",
        "this part is fitted again.",
        "this part is fitted again.",
    ]


@pytest.mark.parametrize(
    "change",
    [
        lambda tensors, metadata: tensors.update({"net/body.model": tensors["net/body.model"][:50].clone()}),
        lambda tensors, metadata: tensors.update({"net/body.classes": torch.tensor([0, 0])}),
        lambda tensors, metadata: tensors.update({"net/body.cut": torch.tensor(-1)}),
        lambda tensors, metadata: tensors["history/val/hits"].fill_(10**6),
    ],
    ids=["a torn model", "classes twice", "a negative number of stages", "more hits than examples"],
)
def test_an_estimator_with_a_damaged_checkpoint_is_fitted_again(
    trainer: Make, tmp_path: Path, change: Callable[[dict[str, Any], dict[str, Any]], object]
) -> None:
    net = Trees(min_leaf=2)
    first = trainer(net=net, directory=tmp_path)
    expected = first.logits(first.fit(MeanRisk()), "test")
    rewritten(tmp_path / "checkpoint.safetensors", "checkpoint", change)
    noted = Noted()
    again = trainer(net=net, directory=tmp_path, progress=noted)
    assert torch.equal(again.logits(again.fit(MeanRisk()), "test"), expected)
    assert again.history.counts("val").epochs == 4
    (note,) = noted.notes
    assert note.endswith("; the stage fit starts again.")
