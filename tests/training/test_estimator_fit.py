"""Fits of estimators: weights, stages as epochs, checkpoints, and trajectories by cross-fitting."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from umix.core.streams import stream
from umix.core.subsets import stratified_folds
from umix.data.samplers import Repeated, Weighted
from umix.data.task import Task
from umix.errors import UserError
from umix.methods.focal import Focal
from umix.models.estimators import estimator
from umix.models.estimators.boosted import Trees
from umix.models.registry import net_settings
from umix.training import estimator_fit
from umix.training.batch_risk import BatchRisk
from umix.training.context import Context
from umix.training.objective import MeanRisk
from umix.training.stage import ErmStage

Make = Callable[..., Context]
SMALL = Trees(min_leaf=2)


def plain(task: Task, context: Context, *, stages: int, weight: np.ndarray | None = None) -> np.ndarray:
    """Probabilities of test rows by scikit-learn alone."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    train = task.splits["train"]
    seed = int(stream(context.seed, "fit", "init").integers(2**31))
    model = HistGradientBoostingClassifier(max_iter=stages, min_samples_leaf=2, early_stopping=False, random_state=seed)
    model.fit(train.x.numpy(), train.y.numpy(), sample_weight=weight)
    return model.predict_proba(task.splits["test"].x.numpy())


def test_erm_is_the_plain_library(context: Make, moons: Task) -> None:
    make = context(net=SMALL)
    p = make.logits(make.fit(MeanRisk()).net, "test").double().softmax(dim=1).numpy()
    expected = plain(moons, make, stages=4 * SMALL.trees)
    np.testing.assert_allclose(p, expected, atol=1e-6)
    assert (p.argmax(axis=1) == expected.argmax(axis=1)).all()


def test_weights_visits_and_the_users_weights_multiply(context: Make, moons: Task) -> None:
    make, n = context(net=SMALL), len(moons.splits["train"])
    weights, copies = torch.linspace(0.5, 2, n), torch.arange(n) % 3
    net = make.fit(BatchRisk(weights=weights), sampler=Repeated(copies)).net
    there = (copies > 0).numpy()
    train = moons.splits["train"]
    from sklearn.ensemble import HistGradientBoostingClassifier

    seed = int(stream(make.seed, "fit", "init").integers(2**31))
    model = HistGradientBoostingClassifier(max_iter=20, min_samples_leaf=2, early_stopping=False, random_state=seed)
    weight = (weights * copies).double().numpy()[there]
    model.fit(train.x.numpy()[there], train.y.numpy()[there], sample_weight=weight)
    p = make.logits(net, "test").double().softmax(dim=1).numpy()
    np.testing.assert_allclose(p, model.predict_proba(moons.splits["test"].x.numpy()), atol=1e-6)


def test_drawn_rows_count_as_often_as_they_are_drawn(moons: Task) -> None:
    train, rng = moons.splits["train"], np.random.default_rng(0)
    sampler = Weighted(torch.rand(len(train), generator=torch.Generator().manual_seed(0)))
    found = estimator_fit.row_weights(MeanRisk(), sampler, train, rng)
    drawn = sampler.draw(train, np.random.default_rng(0))
    assert found.tolist() == torch.bincount(drawn, minlength=len(train)).tolist()
    assert estimator_fit.row_weights(MeanRisk(), Repeated(torch.ones(len(train)).long()), train, rng).tolist() == [
        1.0
    ] * len(train)


def test_epochs_are_blocks_of_trees(context: Make, moons: Task) -> None:
    make = context(net=SMALL)
    hits = make.fit(MeanRisk()).history.counts("test").all_hits
    assert len(hits) == 4
    y = moons.splits["test"].y.numpy()
    for epoch in range(4):
        p = plain(moons, make, stages=SMALL.trees * (epoch + 1))
        assert hits[epoch] == (p.argmax(axis=1) == y).sum()


def test_an_objective_that_needs_gradients_is_refused(context: Make) -> None:
    objective = Focal().objective() if hasattr(Focal, "objective") else BatchRisk(risk_of=torch.amax)
    with pytest.raises(UserError, match="must be minimised by gradient steps, which trees"):
        context(net=SMALL).fit(objective)


def test_pieces_with_checkpoints_are_the_whole_fit(
    context: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = context(net=SMALL)
    expected = whole.fit(MeanRisk())
    monkeypatch.setattr(estimator_fit, "_PIECE", 1.0)  # a checkpoint after every epoch

    class StopError(Exception):
        pass

    class Stop:
        def start(self, stage: str, *, total: int, done: int) -> None:
            self.done = done

        def advance(self, steps: int) -> None:
            self.done += steps
            if self.done == 3:
                raise StopError

        def finish(self) -> None: ...

        def note(self, text: str) -> None: ...

    with pytest.raises(StopError):
        context(net=SMALL, directory=tmp_path, progress=Stop()).fit(MeanRisk())
    resumed = context(net=SMALL, directory=tmp_path)
    result = resumed.fit(MeanRisk())
    assert torch.equal(resumed.logits(result.net, "test"), whole.logits(expected.net, "test"))
    assert np.array_equal(result.history.counts("val").hits, expected.history.counts("val").hits)


def test_a_finished_fit_is_loaded(context: Make, tmp_path: Path) -> None:
    first = context(net=SMALL, directory=tmp_path)
    expected = first.logits(first.fit(MeanRisk()).net, "test")
    again = context(net=SMALL, directory=tmp_path)
    net = again.fit(MeanRisk()).net
    assert again.journal.reports["fit"].reused
    assert torch.equal(again.logits(net, "test"), expected)


def test_the_trajectory_is_that_of_models_that_did_not_see_the_row(context: Make, moons: Task) -> None:
    from sklearn.ensemble import HistGradientBoostingClassifier

    make = context(net=SMALL.model_copy(update={"folds": 3}))
    found = make.trajectory(ErmStage("trajectory", 2, record="online"))
    train, wrong = moons.splits["train"], np.full((2, len(moons.splits["train"])), np.nan)
    x, y = train.x.numpy(), train.y.numpy()
    fold = stratified_folds(y, folds=3, rng=stream(0, "trajectory", "folds/train", 0))
    for held in range(3):
        seed = int(stream(0, "trajectory", "init", held).integers(2**31))
        for epoch in range(2):
            model = HistGradientBoostingClassifier(
                max_iter=SMALL.trees * (epoch + 1), min_samples_leaf=2, early_stopping=False, random_state=seed
            ).fit(x[fold != held], y[fold != held])
            wrong[epoch, fold == held] = model.predict(x[fold == held]) != y[fold == held]
    for length in (1, 2):
        assert found.uncertainty(start=0, length=length).numpy() == pytest.approx(wrong[:length].mean(axis=0))
    assert found.val is not None
    assert found.val.epochs == 2


def test_one_fold_judges_rows_by_the_model_that_has_seen_them(context: Make) -> None:
    seen = context(net=Trees(min_leaf=1, folds=1, trees=30, leaves=200))
    u = seen.trajectory(ErmStage("trajectory", 4, record="online")).uncertainty(start=3, length=1)
    assert not u.any()  # memorised


def test_a_killed_trajectory_goes_on_with_the_next_fold(context: Make, tmp_path: Path) -> None:
    class StopError(Exception):
        pass

    class Stop:
        def __init__(self) -> None:
            self.folds = 0

        def start(self, stage: str, *, total: int, done: int) -> None: ...

        def advance(self, steps: int) -> None:
            self.folds += steps
            if self.folds == 2:
                raise StopError

        def finish(self) -> None: ...

        def note(self, text: str) -> None: ...

    stage = ErmStage("trajectory", 3, record="online")
    expected = context(net=SMALL).trajectory(stage).uncertainty(start=0, length=3)
    with pytest.raises(StopError):
        context(net=SMALL, directory=tmp_path, progress=Stop()).trajectory(stage)
    assert len(list(tmp_path.rglob("fold-*.safetensors"))) == 2
    again = context(net=SMALL, directory=tmp_path)
    assert torch.equal(again.trajectory(stage).uncertainty(start=0, length=3), expected)
    assert not list(tmp_path.rglob("fold-*.safetensors"))
    third = context(net=SMALL, directory=tmp_path)
    third.trajectory(stage)
    assert third.journal.reports["trajectory"].reused


def test_an_estimator_without_stages_has_repeats_for_epochs(context: Make) -> None:
    make = context(net=net_settings("sklearn.naive_bayes:GaussianNB", folds=2))
    found = make.trajectory(ErmStage("trajectory", 3, record="online"))
    assert found.epochs == 3
    u = found.uncertainty(start=0, length=3)
    assert {round(value, 4) for value in u.tolist()} - {
        0.0,
        1.0,
    }  # divisions differ, so some rows are wrong now and then
    assert make.fit(MeanRisk()).history.counts("val").epochs == 1


def test_several_devices_are_refused(context: Make) -> None:
    from umix.training.engine import Engine

    with pytest.raises(UserError, match="trees must be trained in one process, got 2 devices"):
        context(net=SMALL, engine=Engine(devices=2))


def test_folds_that_a_killed_process_did_not_remove_are_removed_with_the_next_use(
    context: Make, tmp_path: Path
) -> None:
    stage = ErmStage("trajectory", epochs=2, record="online")
    context(net=SMALL, directory=tmp_path).trajectory(stage)
    (folder,) = (tmp_path / "stages").iterdir()
    names = {path.name for path in folder.iterdir()}
    (folder / "fold-0-4.safetensors").touch()
    context(net=SMALL, directory=tmp_path).trajectory(stage)
    assert {path.name for path in folder.iterdir()} == names


def test_few_rows_have_one_thread_and_many_as_many_as_torch(moons: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    assert estimator.threads_for(moons.splits["train"]) == 1
    monkeypatch.setattr(estimator, "_FEW", 10)
    assert estimator.threads_for(moons.splits["train"]) == 7
