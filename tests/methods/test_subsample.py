"""SUBY and SUBG: which rows are kept, and what training on them is."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from umix.core.subsets import balanced_subset
from umix.data.samplers import Growing
from umix.data.task import Split, Task
from umix.errors import UserError
from umix.methods.erm import ERM
from umix.methods.pde import PDE
from umix.methods.subsample import SUBG, SUBY, Subsampling
from umix.models.net import Net
from umix.training.context import Context

Make = Callable[..., Context]


def parameters(net: Net) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in net.parameters()])


def visited(method: Subsampling, run: Context, monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """The rows of every epoch."""
    epochs: list[Tensor] = []
    draw = Growing.draw

    def spy(self: Growing, split: Split, rng: np.random.Generator) -> Tensor:
        epochs.append(draw(self, split, rng))
        return epochs[-1]

    monkeypatch.setattr(Growing, "draw", spy)
    method.train(run)
    return epochs


@pytest.mark.parametrize(("method", "groups"), [(SUBY(), False), (SUBG(), True)], ids=["suby", "subg"])
def test_only_the_subset_is_visited_and_its_rows_as_often_in_every_epoch(
    context: Make, method: Subsampling, groups: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = context(groups=groups)
    train = run.task.splits["train"]
    unit = train.group if groups else train.y
    epochs = visited(method, run, monkeypatch)
    kept = torch.cat(epochs).unique()
    assert unit[kept].bincount().tolist() == [int(unit.bincount().min())] * len(unit.unique())
    for rows in epochs:
        assert len(rows) == len(train)
        assert rows.bincount(minlength=len(train))[kept].unique().diff().tolist() in ([], [1])


def test_subg_is_pde_without_expansion_bit_by_bit(context: Make) -> None:
    subset = SUBG().train(context(groups=True)).net
    assert torch.equal(parameters(subset), parameters(PDE(warm_up=1.0).train(context(groups=True)).net))


def test_suby_with_equal_classes_is_erm_bit_by_bit(context: Make, moons: Task) -> None:
    train = moons.splits["train"]
    equal = train.rows(torch.from_numpy(balanced_subset(train.y.numpy(), rng=np.random.default_rng(0))))
    task = Task("equal", {**moons.splits, "train": equal}, moons.classes)
    nets = [method.train(context(task=task)).net for method in (SUBY(), ERM())]
    assert torch.equal(parameters(nets[0]), parameters(nets[1]))


def test_a_small_subset_is_said(context: Make, moons: Task) -> None:
    train = moons.splits["train"]
    rare = torch.cat([(train.group != 1).nonzero()[:, 0], (train.group == 1).nonzero()[:3, 0]])
    task = Task("rare", {**moons.splits, "train": train.rows(rare)}, moons.classes)
    result = SUBG().train(context(task=task, groups=True))
    assert result.choices["subset"]["words"] == f"subset: 12 of {len(rare)} rows, 3 per group"
    assert any("3 per group, because a group is that small" in warning for warning in result.warnings)


def test_subg_needs_the_group_of_every_row(context: Make, moons: Task) -> None:
    train = moons.splits["train"]
    some = replace(train, groups=train.groups.known_for(torch.arange(len(train)) > 5))
    with pytest.raises(UserError, match="group of every example must be known"):
        SUBG().train(context(task=Task("some", {**moons.splits, "train": some}, moons.classes), groups=True))
