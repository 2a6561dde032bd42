"""Reweighting and resampling: what they balance, and which groups they look at."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from umix.bench.runs.execute import execute
from umix.bench.spec.run_spec import RunSpec
from umix.data.benchmarks.four_moons import FourMoons
from umix.data.groups import Groups
from umix.data.registry import TASKS
from umix.data.samplers import Sampler
from umix.data.task import Task
from umix.errors import UserError
from umix.methods.erm import ERM
from umix.methods.registry import METHODS
from umix.methods.reweight import Resample, Reweight
from umix.models.net import Net
from umix.training.context import Context
from umix.training.objective import MeanRisk, Objective
from umix.training.train_result import TrainResult

Make = Callable[..., Context]
BOTH = pytest.mark.parametrize("kind", [Reweight, Resample], ids=lambda kind: kind.name)


def parameters(net: Net) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in net.parameters()])


def test_reweighting_balanced_classes_is_erm(context: Make) -> None:
    reweighted, erm = Reweight(by="class").train(context()).net, ERM().train(context()).net
    torch.testing.assert_close(parameters(reweighted), parameters(erm), atol=1e-6, rtol=0)


@BOTH
@pytest.mark.parametrize("by", ["class", "group"])
def test_every_class_or_group_has_the_same_total_weight(context: Make, kind: type[Reweight], by: str) -> None:
    run = context(task=FourMoons(sizes=(30, 7, 0, 20), eval_size=10).load())
    weight = kind(by=by).train(run).per_example["weight"]
    train = run.task.splits["train"]
    totals = np.bincount(train.y if by == "class" else train.group, weights=weight.double())
    present = totals[totals > 0]
    assert present == pytest.approx([len(train) / len(present)] * len(present), rel=1e-6)


def test_a_weight_of_k_is_k_copies(context: Make, moons: Task) -> None:
    train = moons.splits["train"]
    sizes = np.bincount(train.group)
    copies = torch.from_numpy(sizes.max() // sizes)[train.group]  # 60 and 10: whole copies balance the groups
    repeated = train.rows(torch.repeat_interleave(torch.arange(len(train)), copies))
    everything = {"batch_size": 10_000, "epochs": 6, "lr": 0.1}
    balanced = Task(moons.name, {**moons.splits, "train": repeated}, moons.classes)
    plain = context(task=balanced, fit=everything).fit(MeanRisk())
    weighted = Reweight(by="group").train(context(fit=everything))
    torch.testing.assert_close(parameters(weighted.net), parameters(plain.net), atol=1e-5, rtol=0)


def test_resampling_visits_every_group_equally_often(
    context: Make, moons: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, samplers, fit = moons.splits["train"], [], Context.fit

    def spy(self: Context, objective: Objective, *, sampler: Sampler) -> TrainResult:
        samplers.append(sampler)
        return fit(self, objective, sampler=sampler)

    monkeypatch.setattr(Context, "fit", spy)
    Resample(by="group").train(context())
    seen = torch.cat([samplers[0].draw(train, np.random.default_rng(epoch)) for epoch in range(200)])
    assert len(seen) == 200 * len(train)
    assert (torch.bincount(train.group[seen]) / len(seen)).tolist() == pytest.approx([0.25] * 4, abs=0.01)


@BOTH
def test_groups_are_needed_only_to_balance_groups(kind: type[Reweight]) -> None:
    assert not kind(by="class").needs_groups
    assert kind(by="group").needs_groups
    assert METHODS[kind.name].needs_groups_if == "if by=group"


@BOTH
def test_groups_that_overlap_are_refused_before_training_only_where_they_are_needed(
    kind: type[Reweight], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Overlapping(FourMoons):
        def load(self, root: Path | None = None) -> Task:
            task = FourMoons(sizes=(20, 5, 5, 20), eval_size=10).load()
            splits = {
                name: replace(split, groups=Groups(torch.ones_like(split.member), split.groups.names))
                for name, split in task.splits.items()
            }
            return Task(task.name, splits, task.classes)

    monkeypatch.setitem(TASKS.own, "four_moons", Overlapping)
    with pytest.raises(UserError, match="exactly one of the groups"):
        execute(RunSpec(task="four_moons", method=kind.name, settings={"by": "group", "epochs": 1}), out=tmp_path)
    assert list(tmp_path.iterdir()) == []
    execute(RunSpec(task="four_moons", method=kind.name, settings={"by": "class", "epochs": 1}), out=tmp_path)


def test_the_power_zero_is_erm(context: Make) -> None:
    reweighted, erm = Reweight(by="group", power=0.0).train(context(groups=True)), ERM().train(context())
    torch.testing.assert_close(parameters(reweighted.net), parameters(erm.net), atol=1e-6, rtol=0)


@BOTH
@pytest.mark.parametrize("scheme", ["inverse", "effective"])
def test_the_power_is_that_of_the_weights_also_where_groups_are_spread(
    context: Make, kind: type[Reweight], scheme: str
) -> None:
    kept = []
    for settings in ({}, {"power": 0.5}, {"power": 0.5, "groups_from": "few"}):  # all groups are known here
        run = context(groups=True, fit={"epochs": 1})
        kept.append(kind(by="group", scheme=scheme, **settings).train(run).per_example["weight"].double())
    full, root, spread = kept
    torch.testing.assert_close(root, full.sqrt() / full.sqrt().mean(), rtol=1e-6, atol=0)
    torch.testing.assert_close(spread, root, rtol=1e-6, atol=0)
