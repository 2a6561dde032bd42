"""eta="auto": the choice, its guard, and that a chosen setting is the same as a given one."""

import numpy as np
import pytest
import torch

from umix import RunSpec, execute, method
from umix.data.groups import Groups
from umix.data.task import Split, Task
from umix.errors import UserError
from umix.methods.parts.automatic import settle
from umix.nets.mlp import MLP
from umix.training.fit_settings import FitSettings
from umix.training.objective import MeanRisk
from umix.training.trainer import Trainer

AUTO = {"umix.eta": "auto", "umix.pool": "auto", "umix.length": "auto"}


def noise(n=400, *, seed=0):
    """Labels that x says nothing of, seven in ten of them 0."""
    rng = np.random.default_rng(seed)
    splits = {}
    for name in ("train", "val", "test"):
        y = torch.from_numpy((rng.random(n) < 0.3).astype(np.int64))
        splits[name] = Split(torch.from_numpy(rng.normal(size=(n, 5))).float(), y, Groups(torch.zeros(n, 0).bool(), ()))
    return Task("noise", splits, ("0", "1"))


def trainer_on(task, **settings):
    return Trainer(task, MLP(hidden=(8,)), FitSettings(epochs=4, batch_size=64, lr=0.01, **settings))


def test_an_auto_run_is_the_run_with_the_decided_values(tmp_path):
    auto = execute(RunSpec(task="four_moons", method="umix", settings=AUTO | {"fit.epochs": 6}), out=tmp_path)
    chosen = auto.decisions
    fixed = {f"umix.{name}": chosen[name] for name in ("eta", "pool", "start", "length")}
    again = execute(
        RunSpec(task="four_moons", method="umix", settings=fixed | {"fit.epochs": 6, "trajectory.epochs": 6}),
        out=tmp_path,
    )
    assert auto.split_counts == again.split_counts
    assert again.decisions == {}
    assert "trial" in auto.decisions["reason"]


def test_trials_are_shared_and_a_second_run_trains_none_of_them_again(tmp_path):
    settings = AUTO | {"fit.epochs": 3}
    first = execute(RunSpec(task="four_moons", method="umix", settings=settings), out=tmp_path)
    second = execute(RunSpec(task="four_moons", method="umix", settings=settings | {"umix.budget": 0.2}), out=tmp_path)
    common = [name for name in first.stages if name.startswith("trial") and name in second.stages]
    assert common
    assert all(second.stages[name].reused and not first.stages[name].reused for name in common)


def test_a_budget_that_every_trial_breaks_gives_eta_zero_with_a_warning():
    trainer = trainer_on(noise())
    chosen = settle(
        lambda eta, pool: MeanRisk(),
        trainer,
        uncertainty=torch.zeros(400),
        baseline=2.0,  # nothing reaches it
        budget=0.05,
        etas=(1.0, 3.0),
        pools=("example", "class"),
        content="test",
    )
    assert chosen == (0.0, "example")
    assert list(trainer.reports) == ["trial-example-1", "trial-class-1"]  # the climb ends at the first that breaks it
    assert "weigh alike" in trainer.decisions["reason"]
    assert len(trainer.warnings) == 1


def test_trials_never_see_test_examples_or_groups():
    task = noise()
    poisoned = Split(torch.full((400, 5), torch.nan), task.splits["test"].y, task.splits["test"].groups)
    outcomes = []
    for splits in (task.splits, {**task.splits, "test": poisoned}):
        trainer = trainer_on(Task("noise", splits, task.classes))
        method("umix", eta="auto", pool="auto", length="auto", budget=0.5).train(trainer)
        outcomes.append(trainer.decisions)
    assert outcomes[0] == outcomes[1]


def test_only_what_is_auto_is_tried():
    trainer = trainer_on(noise())
    method("umix", eta="auto", pool="class", length=2, budget=1.0).train(trainer)
    assert [name for name in trainer.reports if name.startswith("trial-example")] == []
    assert trainer.decisions["pool"] == "class"
    assert "length" not in trainer.decisions


def test_an_ensemble_has_no_window_to_find():
    with pytest.raises(UserError, match="length must be a number of models"):
        method("umix", uncertainty="ensemble", length="auto").train(trainer_on(noise()))


@pytest.mark.parametrize("eta", [-1, "automatic"])
def test_eta_is_a_number_or_auto(eta):
    with pytest.raises(UserError, match=r"umix.eta must be a number in \[0, inf\) or auto"):
        method("umix", eta=eta)


def test_class_pooling_weighs_a_class_alike():
    trainer = trainer_on(noise())
    method("umix", eta=5.0, pool="class", length=2).train(trainer)
    y, w, u = trainer.task.splits["train"].y, trainer.kept["weight"], trainer.kept["uncertainty"]
    raw = [1 + 5.0 * u[y == c].mean() for c in (0, 1)]
    assert all(len(w[y == c].unique()) == 1 for c in (0, 1))
    torch.testing.assert_close(w[y == 1][0] / w[y == 0][0], raw[1] / raw[0])
