"""GroupDRO's step against loops over groups in NumPy."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from umix.core.environments import indicators
from umix.core.risks import worst_group_risk

Q = [0.4, 0.1, 0.3, 0.2]


def _losses(n, seed=0, dtype=torch.float64):
    return torch.tensor(np.random.default_rng(seed).exponential(size=n), dtype=dtype)


def _reference(losses, member, q, step_size, margin):
    """The risk and the new weights, group by group."""
    q = np.array(q)
    present = [g for g in range(len(q)) if member[:, g].sum() > 0]
    risks = {g: (member[:, g] * losses).sum() / member[:, g].sum() for g in present}
    grown = {g: q[g] * np.exp(step_size * (risks[g] + margin[g])) for g in present}
    together, total = sum(q[g] for g in present), sum(grown.values())
    for g in present:
        q[g] = together * grown[g] / total
    return sum(q[g] * risks[g] for g in present), q


@given(st.integers(0, 10**6), st.integers(1, 12), st.booleans())
def test_risk_and_weights_are_those_of_a_loop_over_groups(seed, n, soft):
    rng = np.random.default_rng(seed)
    member = np.eye(4)[rng.integers(4, size=n)]
    if soft:
        member = rng.dirichlet(np.ones(4), size=n) * (rng.random(4) < 0.7)
        member[:, 0] += 1 - member.sum(1)
    losses, margin = _losses(n, seed), rng.random(4)
    risk, q = worst_group_risk(
        losses, torch.from_numpy(member), torch.tensor(Q).double(), step_size=0.7, margin=torch.from_numpy(margin)
    )
    expected, weights = _reference(losses.numpy(), member, torch.tensor(Q).double().tolist(), 0.7, margin)
    assert risk.item() == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(q.numpy(), weights, rtol=1e-10, atol=0)


def test_the_gradient_is_that_of_the_groups_risks_with_constant_weights():
    group = torch.tensor([0, 2, 2, 0, 2])
    losses, member = _losses(5).requires_grad_(), indicators(group, 4, like=torch.zeros(1).double())
    risk, q = worst_group_risk(losses, member, torch.tensor(Q).double(), step_size=1.0)
    (gradient,) = torch.autograd.grad(risk, losses)
    torch.testing.assert_close(gradient, torch.stack([q[g] / (group == g).sum() for g in group.tolist()]))
    assert not q.requires_grad


def test_groups_whose_weight_has_vanished_keep_none_and_make_nothing_nan():
    member, q = indicators(torch.tensor([1, 1]), 2, like=torch.zeros(1)), torch.tensor([1.0, 0.0])
    risk, after = worst_group_risk(_losses(2, dtype=torch.float32), member, q, step_size=1.0)
    assert (risk.item(), after.tolist()) == (0.0, [1.0, 0.0])


def test_arguments_are_left_as_they_were_and_nothing_is_read_back():
    losses, member, q, margin = _losses(3), torch.eye(4).double()[:3], torch.tensor(Q).double(), torch.ones(4).double()
    before = [tensor.clone() for tensor in (losses, member, q, margin)]
    worst_group_risk(losses, member, q, step_size=1.0, margin=margin)
    assert all(torch.equal(a, b) for a, b in zip(before, (losses, member, q, margin), strict=True))
    risk, _ = worst_group_risk(*(tensor.to("meta") for tensor in (losses, member, q)), step_size=1.0)
    assert risk.device.type == "meta"


def test_a_large_group_in_half_precision_has_the_mean_of_its_losses():
    losses, member = torch.ones(1000, dtype=torch.bfloat16), torch.ones(1000, 1, dtype=torch.bfloat16)
    risk, q = worst_group_risk(losses, member, torch.ones(1), step_size=1.0)
    assert (risk.item(), q.item()) == (pytest.approx(1, rel=1e-6), pytest.approx(1, rel=1e-6))


def test_huge_risks_overflow_nothing():
    member = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    risk, q = worst_group_risk(torch.tensor([9e9, 1.0]), member, torch.tensor([0.3, 0.3, 0.4]), step_size=0.01)
    torch.testing.assert_close(q, torch.tensor([0.6, 0.0, 0.4]))
    assert risk.item() == pytest.approx(0.6 * 9e9)


def test_a_huge_risk_of_a_group_without_weight_takes_nothing_from_the_others():
    member = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    risk, q = worst_group_risk(torch.tensor([9e9, 1.0]), member, torch.tensor([0.0, 0.6, 0.4]), step_size=0.01)
    torch.testing.assert_close(q, torch.tensor([0.0, 0.6, 0.4]))
    assert risk.item() == pytest.approx(0.6)
