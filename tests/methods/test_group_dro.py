"""GroupDRO against an independent NumPy reference and its identities."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from umix.core.evaluation import Evaluation
from umix.data.batch import Batch
from umix.data.groups import Groups
from umix.data.samplers import Balanced
from umix.data.task import Split, Task
from umix.errors import UserError
from umix.methods.group_dro import GroupDRO
from umix.methods.parts.worst_group_risk import WorstGroupRisk
from umix.models.mlp import MLP
from umix.selection.halving import SELECTION
from umix.training.context import Context
from umix.training.objective import MeanRisk

Make = Callable[..., Context]
SIZES = torch.tensor([50, 5, 0, 20])


def batch_of(groups: list[int]) -> Batch:
    rng = np.random.default_rng(0)
    n = len(groups)
    x, y = torch.from_numpy(rng.standard_normal((n, 3))), torch.from_numpy(rng.integers(2, size=n))
    return Batch(x, y, torch.arange(n), group=torch.tensor(groups))


def test_q_and_the_risk_follow_the_formula_over_several_batches() -> None:
    objective = WorstGroupRisk(step_size=0.7, adjustment=2.0, sizes=SIZES)
    net = MLP(hidden=(4,)).build(torch.zeros(3), 2).double()
    state = {name: tensor.double() for name, tensor in objective.init(4).items()}
    q = np.array([1 / 3, 1 / 3, 0, 1 / 3])
    for groups in ([0, 0, 1, 3, 3], [0, 1, 1, 0], [3, 3]):
        batch = batch_of(groups)
        risk, state = objective.risk(net, batch, state, np.random.default_rng(0))
        logits = net(batch.x).detach().numpy()
        losses = np.log(np.exp(logits).sum(1)) - logits[np.arange(len(groups)), batch.y.numpy()]
        means = {g: losses[np.array(groups) == g].mean() for g in set(groups)}
        grown = {g: q[g] * np.exp(0.7 * (mean + 2.0 / np.sqrt(SIZES[g].item()))) for g, mean in means.items()}
        together = sum(q[g] for g in grown)
        for g, value in grown.items():
            q[g] = together * value / sum(grown.values())
        assert risk.item() == pytest.approx(sum(q[g] * mean for g, mean in means.items()), rel=1e-6)
        np.testing.assert_allclose(state["q"].numpy(), q, rtol=1e-6)


def test_probabilities_of_known_groups_are_groups() -> None:
    net = MLP(hidden=(4,)).build(torch.zeros(3), 2).double()
    for groups in ([0, 0, 1, 3, 3], [3, 3]):
        group, batch = torch.tensor(groups), batch_of(groups)
        known = WorstGroupRisk(step_size=0.7, adjustment=2.0, sizes=SIZES)
        soft = WorstGroupRisk(
            step_size=0.7, adjustment=2.0, sizes=SIZES, p=torch.nn.functional.one_hot(group, 4).double()
        )
        assert not soft.needs_groups
        (risk, state), (soft_risk, soft_state) = (
            each.risk(net, batch, each.init(4), np.random.default_rng(0)) for each in (known, soft)
        )
        assert soft_risk.item() == pytest.approx(risk.item(), rel=1e-6)
        torch.testing.assert_close(soft_state["q"], state["q"], rtol=1e-6, atol=0)


def test_equally_hard_groups_keep_equal_weights_where_batches_do_not_hold_all_alike() -> None:
    """258 examples in batches of 64: the last batch of an epoch has two of the four groups."""
    group = torch.arange(258) % 4
    objective = WorstGroupRisk(step_size=0.05, adjustment=0.0, sizes=torch.bincount(group), group=group)
    net = MLP(hidden=()).build(torch.zeros(3), 2)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.zero_()  # every example costs log 2
    split = Split(torch.zeros(258, 3), torch.zeros(258, dtype=torch.int64), Groups.from_ids(group, "abcd"))
    state = objective.init(4)
    for epoch in range(60):
        order = Balanced(group).draw(split, np.random.default_rng(epoch))
        for index in order.split(64):
            batch = Batch(split.x[index], split.y[index], index)
            _, state = objective.risk(net, batch, state, np.random.default_rng(0))
    assert state["q"].tolist() == pytest.approx([0.25] * 4, abs=1e-4)


def test_with_step_size_zero_it_is_balanced_erm(context: Make) -> None:
    dro = GroupDRO(step_size=0.0).train(context(groups=True)).net
    other = context()
    erm = other.fit(MeanRisk(), sampler=Balanced(other.splits["train"].group)).net
    for a, b in zip(dro.parameters(), erm.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=2e-3, rtol=0)  # 160 examples: the last batch has not all groups alike


def test_overlapping_groups_are_refused_and_declared_training_groups_used(context: Make, moons: Task) -> None:
    train = moons.splits["train"]
    overlapping = Groups(torch.ones_like(train.member), train.groups.names)
    task = Task(moons.name, {**moons.splits, "train": replace(train, groups=overlapping)}, moons.classes)
    with pytest.raises(UserError, match="must be in exactly one of the groups"):
        GroupDRO().train(context(task=task, groups=True))
    declared = replace(train, groups=overlapping, training_groups=Groups.from_ids(train.y, ("no", "yes")))
    run = context(task=Task(moons.name, {**moons.splits, "train": declared}, moons.classes), groups=True)
    GroupDRO().train(run)
    assert run.task.training_groups == ("no", "yes")


def test_an_auto_step_size_is_chosen_by_the_worst_validation_group_and_is_a_run_with_it(context: Make) -> None:
    auto = GroupDRO(step_size="auto").train(context(groups=True))
    chosen = auto.choices["step_size"]
    assert chosen in (0.001, 0.01, 0.1)
    assert "worst group " in auto.choices["reason"]
    assert len(auto.choices["candidates"]) == 3
    again = GroupDRO(step_size=chosen).train(context(groups=True)).net
    for a, b in zip(auto.net.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)


def test_where_no_validation_groups_may_choose_auto_is_the_papers_step_size(context: Make) -> None:
    run = context(groups=True, evaluation=Evaluation(choose=False))
    auto = GroupDRO(step_size="auto").train(run)
    assert SELECTION not in run.journal.reports
    assert auto.choices["step_size"] == 0.01
    again = GroupDRO().train(context(groups=True)).net
    for a, b in zip(auto.net.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)


def test_auto_with_a_few_known_groups_is_auto_where_these_are_all(context: Make) -> None:
    known = GroupDRO(step_size="auto").train(context(groups=True))
    few = GroupDRO(step_size="auto", groups_from="few").train(context())
    assert known.choices["candidates"] == few.choices["candidates"]
    for a, b in zip(known.net.parameters(), few.net.parameters(), strict=True):
        assert torch.equal(a, b)
