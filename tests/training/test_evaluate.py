"""Evaluation passes."""

import pytest
import torch

from umix.core.counts import group_counts
from umix.data.groups import Groups
from umix.data.inputs import Mapped
from umix.data.task import Split, Task
from umix.errors import UserError
from umix.models.mlp import MLP
from umix.training import evaluate
from umix.training.evaluate import Evaluated, correctness, require_finite, split_logits


def test_batching_and_laziness_do_not_change_who_is_correct(moons: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    split = moons.splits["train"]
    net = MLP(hidden=(16,)).build(split.x[0], 2)
    whole = net(split.x).argmax(1) == split.y
    assert torch.equal(correctness(net, split, batch_size=64), whole)
    monkeypatch.setattr(evaluate, "_CHUNK", 10)
    assert torch.equal(correctness(net, split, batch_size=7), whole)
    lazy = Split(Mapped(split.x, "stored"), split.y, split.groups)
    assert torch.equal(correctness(net, lazy, batch_size=7), whole)
    losses = torch.nn.functional.cross_entropy(net(split.x), split.y, reduction="none").detach()
    for form in (split, lazy):
        found: Evaluated = evaluate.evaluate(net, form, n_classes=2, batch_size=7, keep_logits=True)
        assert torch.equal(found.predicted == form.y, whole)
        torch.testing.assert_close(found.losses, losses)
        assert found.logits is not None
        torch.testing.assert_close(found.logits, net(split.x).detach())
        assert torch.equal(found.logits, split_logits(net, form, n_classes=2, batch_size=7))
        assert evaluate.evaluate(net, form, n_classes=2, batch_size=7).logits is None


def test_evaluation_leaves_no_gradient_and_uses_evaluation_mode(moons: Task) -> None:
    split = moons.splits["val"]
    net = MLP(hidden=(16,), dropout=0.9).build(split.x[0], 2).train()
    first, second = (correctness(net, split, batch_size=64) for _ in range(2))
    assert torch.equal(first, second)
    assert all(parameter.grad is None for parameter in net.parameters())


def test_an_empty_split_has_no_hits() -> None:
    split = Split(
        torch.zeros(0, 2), torch.zeros(0, dtype=torch.int64), Groups(torch.zeros(0, 3).bool(), ("a", "b", "c"))
    )
    net = MLP(hidden=()).build(torch.zeros(2), 2)
    hits, sizes = group_counts(correctness(net, split, batch_size=4), split.member_float)
    assert hits.tolist() == sizes.tolist() == [0, 0, 0]


def test_outputs_that_are_not_finite_are_refused_in_a_sentence() -> None:
    z = torch.tensor([[0.0, 1.0], [float("nan"), 1.0], [float("inf"), 1.0]])
    with pytest.raises(UserError, match=r"The features of stage 'reference' must be finite numbers, .* of 2 examples"):
        require_finite(z, what="features", stage="reference")
    assert require_finite(z[:1], what="features", stage="reference") is not None
