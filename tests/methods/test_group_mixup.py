"""Group-weighted mixup: what it is with its parts switched off, and with groups of few rows."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from umix.bench.runs.execute import execute
from umix.bench.spec.run_spec import RunSpec
from umix.data.groups import Groups
from umix.data.task import Task
from umix.errors import UserError
from umix.methods.group_dro import GroupDRO
from umix.methods.group_mixup import GroupMixup
from umix.methods.method import Method
from umix.methods.mixup import Mixup
from umix.methods.reweight import Resample, Reweight
from umix.models.net import Net
from umix.training.context import Context

Make = Callable[..., Context]
FAST = {"epochs": 3, "task.sizes": [60, 12, 12, 60], "task.eval_size": 60, "net.hidden": [4]}
FEW = [
    GroupMixup(groups_from="few"),
    GroupDRO(groups_from="few", adjustment=1.0, step_size=0.1),
    Reweight(by="group", groups_from="few"),
    Reweight(by="group", scheme="effective", groups_from="few"),
    Resample(by="group", groups_from="few"),
]


def parameters(net: Net) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in net.parameters()])


def without_training_groups(task: Task) -> Task:
    train = task.splits["train"]
    unknown = Groups.cells(train.y, torch.full_like(train.y, -1), labels=["0", "1"], attributes=["0", "1"])
    return Task(
        task.name, {**task.splits, "train": replace(train, groups=replace(unknown, names=task.groups))}, task.classes
    )


def test_without_mixing_it_is_reweighting_by_group(context: Make) -> None:
    mixed = GroupMixup(sigma=0.0).train(context(groups=True)).net
    torch.testing.assert_close(parameters(mixed), parameters(Reweight(by="group").train(context(groups=True)).net))


def test_with_power_zero_it_is_mixup(context: Make) -> None:
    flat = GroupMixup(power=0.0, sigma=1.0, alpha=0.2).train(context(groups=True)).net
    torch.testing.assert_close(parameters(flat), parameters(Mixup().train(context()).net))


def test_weights_follow_the_power_of_the_groups_sizes_and_are_saved(context: Make) -> None:
    run = context(groups=True)
    weight = GroupMixup(power=0.5).train(run).per_example["weight"]
    assert (weight[run.task.splits["train"].group == 1] / weight[0]).tolist() == pytest.approx([6**0.5] * 10, rel=1e-6)
    assert weight.mean().item() == pytest.approx(1)


@pytest.mark.parametrize("few", FEW, ids=lambda method: f"{method.name}-{getattr(method, 'scheme', '')}")
def test_where_all_training_groups_are_known_few_is_train(context: Make, few: Method) -> None:
    every = few.model_copy(update={"groups_from": "train"})
    known, trained = few.train(context()), every.train(context(groups=True))
    assert torch.equal(parameters(known.net), parameters(trained.net))


@pytest.mark.parametrize("few", FEW, ids=lambda method: f"{method.name}-{getattr(method, 'scheme', '')}")
def test_few_never_looks_at_training_groups_that_may_not_be_used(context: Make, moons: Task, few: Method) -> None:
    hidden = few.train(context(task=without_training_groups(moons), use_groups="val"))
    assert torch.equal(parameters(hidden.net), parameters(few.train(context(use_groups="val")).net))
    assert hidden.choices["spread"]["known"] == len(moons.splits["val"])


def test_few_needs_no_training_groups_and_train_does() -> None:
    for few in FEW:
        assert few.needs_some_groups
        assert not few.needs_groups
    assert GroupMixup().needs_groups
    assert GroupDRO().needs_groups
    assert not Reweight().needs_some_groups


def test_few_groups_balance_groups_not_classes() -> None:
    with pytest.raises(UserError, match=r"reweight\.groups_from=few must be used with by=group, got by=class"):
        Reweight(groups_from="few")


def spec(method: str, **settings: object) -> RunSpec:
    return RunSpec(task="four_moons", method=method, settings={**FAST, **settings})


@pytest.mark.parametrize("method", ["group_mixup", "group_dro"])
def test_a_run_with_validation_groups_says_so_and_one_that_may_use_none_is_refused(method: str, tmp_path: Path) -> None:
    record = execute(spec(method, groups_from="few", use_groups="val"), out=tmp_path)
    assert record.group_use == "validation"
    assert record.choices["spread"]["known"] == 240
    assert execute(spec(method, groups_from="few"), out=tmp_path).group_use == "training"
    with pytest.raises(
        UserError, match=r"with groups_from=few trains with the known groups .* use_groups=test does not"
    ):
        execute(spec(method, groups_from="few", use_groups="test"), out=tmp_path)
    with pytest.raises(
        UserError, match=rf"use_groups=val does not allow it; set use_groups=train or {method}\.groups_from=few, or"
    ):
        execute(spec(method, use_groups="val"), out=tmp_path)
