"""Logit adjustment and balanced softmax: what they are where there is nothing to adjust, and that both ways agree."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from umix.data.batch import Batch
from umix.data.benchmarks.four_moons import FourMoons
from umix.data.task import Task
from umix.errors import UserError
from umix.methods.balanced_softmax import BalancedSoftmax
from umix.methods.erm import ERM
from umix.methods.logit_adjustment import LogitAdjustment
from umix.methods.parts.offset_risk import OffsetRisk
from umix.models.estimators.boosted import Trees
from umix.models.mlp import MLP
from umix.models.net import Net
from umix.training.context import Context
from umix.training.objective import MeanRisk, Objective
from umix.training.stage import ErmStage

Make = Callable[..., Context]


@pytest.fixture(scope="module")
def unequal() -> Task:
    """Moons 0 and 2 are class 0, moons 1 and 3 class 1: 90 and 15 examples."""
    return FourMoons(sizes=(45, 8, 45, 7), eval_size=20).load()


def parameters(net: Net) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in net.parameters()])


def log_pi(task: Task) -> Tensor:
    return (torch.bincount(task.splits["train"].y) / len(task.splits["train"])).log()


def test_without_a_correction_it_is_erm_bit_by_bit(context: Make, unequal: Task) -> None:
    adjusted = LogitAdjustment(tau=0.0).train(context(task=unequal)).net
    assert torch.equal(parameters(adjusted), parameters(ERM().train(context(task=unequal)).net))


@pytest.mark.parametrize("method", [BalancedSoftmax(), LogitAdjustment(tau=2.0)], ids=lambda method: method.name)
def test_classes_of_equal_size_need_no_correction(context: Make, method: BalancedSoftmax | LogitAdjustment) -> None:
    torch.testing.assert_close(parameters(method.train(context()).net), parameters(ERM().train(context()).net))


def test_with_tau_one_it_is_balanced_softmax_bit_by_bit(context: Make, unequal: Task) -> None:
    adjusted, balanced = (method.train(context(task=unequal)).net for method in (LogitAdjustment(), BalancedSoftmax()))
    assert torch.equal(parameters(adjusted), parameters(balanced))
    assert not torch.equal(parameters(adjusted), parameters(ERM().train(context(task=unequal)).net))


def test_post_hoc_the_logits_are_those_of_erm_less_the_log_shares(context: Make, unequal: Task) -> None:
    run, other = context(task=unequal), context(task=unequal)
    found = run.logits(LogitAdjustment(tau=1.5, when="post_hoc").train(run).net, "test")
    reference = other.logits(other.reference(ErmStage("reference", 4)), "test")
    torch.testing.assert_close(found, reference - 1.5 * log_pi(unequal))


def trained(objective: Objective, net: Net, task: Task, *, steps: int = 40) -> Net:
    train, optimizer = task.splits["train"], torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for step in range(steps):
        index = torch.from_numpy(np.random.default_rng(step).permutation(len(train))[:32])
        batch = Batch(train.x[index].double(), train.y[index], index, step)
        optimizer.zero_grad()
        objective.risk(net, batch, {}, np.random.default_rng(0))[0].backward()
        optimizer.step()
    return net


def test_trained_from_a_lower_bias_it_is_erm_with_the_post_hoc_adjustment(unequal: Task) -> None:
    x, offset = unequal.splits["train"].x[0], 1.5 * log_pi(unequal).double()
    nets = []
    for _ in range(2):
        torch.manual_seed(0)
        nets.append(MLP(hidden=(8,)).build(x, 2).double())
    erm, lower = nets
    with torch.no_grad():
        lower.head.bias.sub_(offset)
    trained(MeanRisk(), erm, unequal)
    trained(OffsetRisk(offset=offset), lower, unequal)
    with torch.no_grad():
        erm.head.bias.sub_(offset)
    torch.testing.assert_close(parameters(lower), parameters(erm), rtol=1e-10, atol=1e-12)


def test_the_rare_class_is_predicted_more_often(context: Make, unequal: Task) -> None:
    shares = []
    for method in (ERM(), LogitAdjustment(), LogitAdjustment(when="post_hoc")):
        run = context(task=unequal, fit={"epochs": 10})
        shares.append(run.logits(method.train(run).net, "test").argmax(1).float().mean().item())
    erm, in_training, afterwards = shares
    assert in_training > erm + 0.05
    assert afterwards > erm + 0.05


def test_offsets_by_row_are_looked_up_for_every_example() -> None:
    rng = np.random.default_rng(0)
    net = MLP(hidden=()).build(torch.zeros(3), 4).double()
    x, y = torch.from_numpy(rng.normal(size=(6, 3))), torch.tensor([0, 1, 2, 3, 0, 1])
    index, row = torch.tensor([5, 0, 3, 3, 1, 2]), torch.tensor([1, 0, 0, 2, 1, 2])
    table, weights = torch.from_numpy(rng.normal(size=(3, 4))), torch.from_numpy(rng.random(6))
    objective = OffsetRisk(offset=table, row=row, scale=3.0, weights=weights, weights_from=7)
    z = 3 * (net(x).detach().numpy() + np.stack([table[row[i]].numpy() for i in index]))
    losses = np.log(np.exp(z).sum(1)) - z[np.arange(6), y]
    for step, w in ((6, np.ones(6)), (7, weights[index].numpy())):
        for given in (None, torch.linspace(0, 2, 6, dtype=torch.float64)):
            risk, _ = objective.risk(net, Batch(x, y, index, step, weight=given), {}, rng)
            expected = (losses * w * (1 if given is None else given.numpy())).mean()
            assert risk.item() == pytest.approx(expected / 3, rel=1e-12)


def test_a_class_without_training_rows_is_not_predicted(context: Make, unequal: Task) -> None:
    task = Task("three", unequal.splits, ("no", "yes", "never"))
    for when in ("trained", "post_hoc"):
        run = context(task=task, fit={"epochs": 10})
        net = LogitAdjustment(when=when).train(run).net
        assert set(run.logits(net, "test").argmax(1).tolist()) == {0, 1}


def test_trees_are_adjusted_afterwards(context: Make, unequal: Task) -> None:
    net, fit = Trees(min_leaf=2), {"epochs": 2}
    run, other = context(task=unequal, net=net, fit=fit), context(task=unequal, net=net, fit=fit)
    found = run.logits(LogitAdjustment(when="post_hoc").train(run).net, "test")
    reference = other.logits(other.reference(ErmStage("reference", 2)), "test")
    torch.testing.assert_close(found, reference - log_pi(unequal))
    with pytest.raises(UserError, match=r"logit_adjustment\.when must be post_hoc for trees, .* got trained"):
        LogitAdjustment().train(context(task=unequal, net=net, fit=fit))


def test_a_head_without_biases_is_refused_in_words(context: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    run = context()
    net = run.fresh_net("reference")
    net.head = nn.Linear(16, 2, bias=False)
    monkeypatch.setattr(Context, "reference", lambda self, stage: net)
    with pytest.raises(UserError, match=r"must be linear with a bias, got one without; set .*=trained"):
        LogitAdjustment(when="post_hoc").train(run)
