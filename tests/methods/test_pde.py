"""PDE's identities: balanced subsampling, a warm start, and what rows it has seen when."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from umix.cli import main
from umix.core.streams import stream
from umix.core.subsets import balanced_first
from umix.data.groups import Groups
from umix.data.samplers import Sampler, Shuffled, SubsetSampler
from umix.data.task import Split, Task
from umix.methods.pde import PDE
from umix.models.net import Net
from umix.training.context import Context
from umix.training.objective import MeanRisk, Objective
from umix.training.stage import FINAL
from umix.training.train_result import TrainResult

Make = Callable[..., Context]


def parameters(net: Net) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in net.parameters()])


class Then(Sampler):
    """One sampler in the first half of a fit, another in the second."""

    def __init__(self, first: Sampler, second: Sampler) -> None:
        self.first, self.second = first, second

    def size(self, split: Split) -> int:
        return len(split)

    def draw(self, split: Split, rng: np.random.Generator) -> Tensor:
        raise NotImplementedError

    def at(self, progress: float) -> Sampler:
        return self.first if progress < 0.5 else self.second


class InTurn(Sampler):
    """The rows again and again, until there are as many as the split has; a pass is in random order."""

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows

    def size(self, split: Split) -> int:
        return len(split)

    def draw(self, split: Split, rng: np.random.Generator) -> Tensor:
        passes = [SubsetSampler(self.rows).draw(split, rng) for _ in range(10)]
        return torch.cat(passes)[: len(split)]


def subset(run: Context) -> Tensor:
    """The balanced subset of a run with these data: 10 rows of each of four groups."""
    group = run.task.splits["train"].group.numpy()
    order, first = balanced_first(group, rng=stream(run.seed, FINAL, "subset"))
    assert np.bincount(group[order[:first]]).tolist() == [10] * 4
    return torch.from_numpy(order[:first])


@pytest.mark.parametrize("setting", [{"warm_up": 1.0}, {"added": 0.0}])
def test_without_expansion_it_is_training_on_the_balanced_subset(context: Make, setting: dict[str, float]) -> None:
    run, other = context(groups=True), context()
    net = PDE(**setting, lr_factor=0.1).train(run).net
    assert torch.equal(parameters(net), parameters(other.fit(MeanRisk(), sampler=InTurn(subset(other))).net))


def test_adding_all_rows_at_once_is_a_warm_start_and_erm(context: Make) -> None:
    run, other = context(groups=True), context()
    net = PDE(added=1.0, expansions=1, lr_factor=0.3).train(run).net
    expected = other.fit(MeanRisk(lr_milestones=((2 * 5, 0.3),)), sampler=Then(InTurn(subset(other)), Shuffled()))
    assert torch.equal(parameters(net), parameters(expected.net))


def test_where_groups_are_equal_nothing_is_left_to_add_and_it_is_erm(context: Make, moons: Task) -> None:
    train = moons.splits["train"]
    equal = replace(train, groups=Groups.from_ids(torch.arange(140) % 4, train.groups.names))
    task = Task("equal", {**moons.splits, "train": equal}, moons.classes)
    net = PDE(lr_factor=0.1).train(context(task=task, groups=True)).net
    assert torch.equal(parameters(net), parameters(context(task=task).fit(MeanRisk()).net))


def test_rows_join_after_the_warm_up_and_stay(context: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    run, given, fit = context(groups=True, fit={"epochs": 10}), [], Context.fit

    def spy(self: Context, objective: Objective, *, sampler: Sampler) -> TrainResult:
        given.append((objective, sampler))
        return fit(self, objective, sampler=sampler)

    monkeypatch.setattr(Context, "fit", spy)
    PDE(warm_up=0.4, added=0.6, expansions=3, lr_factor=0.1).train(run)
    ((objective, sampler),) = given
    assert objective.lr_milestones == ((4 * 5, 0.1),)
    train = run.splits["train"]
    orders = [sampler.at(epoch / 10).draw(train, np.random.default_rng(epoch)) for epoch in range(10)]
    seen = [set(order.tolist()) for order in orders]
    assert {len(order) for order in orders} == {140}
    assert [len(rows) for rows in seen] == [40, 40, 40, 40, 60, 60, 80, 80, 100, 100]
    assert all(earlier <= later for earlier, later in pairwise(seen))


def test_the_learning_rate_drops_at_the_first_expansion(context: Make) -> None:
    run = context(groups=True)
    PDE(warm_up=0.3, lr_factor=0.1).train(run)  # 1.2 of 4 epochs: the first epoch after that is the third
    rates = [row["learning_rate"] for row in run.journal.logs[FINAL].rows()]
    assert rates == pytest.approx([0.05, 0.05, 0.005, 0.005])


def test_a_tiny_group_is_warned_of_and_a_group_size_takes_more_rows_of_the_others(context: Make, moons: Task) -> None:
    train = moons.splits["train"]
    rows = torch.cat([(train.group == g).nonzero()[: 2 if g == 1 else None, 0] for g in range(4)])
    task = Task("tiny", {**moons.splits, "train": train.rows(rows)}, moons.classes)
    tiny = PDE().train(context(task=task, groups=True))
    assert any("PDE begins with 8 of 132 rows, 2 per group" in warning for warning in tiny.warnings)
    wide = PDE(group_size=20).train(context(task=task, groups=True))
    assert not any("PDE begins" in warning for warning in wide.warnings)


def test_training_rows_without_a_group_are_refused_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{rng.normal():.3f},{i % 2},{'ab'[i // 2 % 2] if i > 20 else ''}" for i in range(400)]
    (tmp_path / "people.csv").write_text("x,y,sex\n" + "\n".join(rows) + "\n")
    run = ["run", str(tmp_path / "people.csv"), "pde", "--label", "y", "--groups", "sex", "--out", str(tmp_path)]
    assert main([*run, "--quiet"]) == 2
    assert "The group of every example must be known here" in capsys.readouterr().err
    assert main([*run, "--quiet", "--use-groups", "val"]) == 2
    assert "pde trains with training groups, but" in capsys.readouterr().err
