"""Soft groups: what they are where groups are known, and independent references where they are not."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from umix.core.weights import (
    balanced_posterior,
    effective_number,
    inverse_frequency,
    one_hot,
    soft_effective_number,
    soft_inverse_frequency,
    soft_sizes,
)

IDS = torch.tensor([0, 0, 3, 1, 0, 3, 0, 1, 1, 1, 1])  # group 2 is empty
WEIGHT = torch.linspace(0.5, 2, len(IDS))


def soft(n: int = 40, groups: int = 3, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).dirichlet([0.3] * groups, n))


@pytest.mark.parametrize("by", [None, WEIGHT], ids=["", "weighted"])
def test_known_groups_have_exactly_the_weights_of_their_inverse_frequency(by: Tensor | None) -> None:
    p = one_hot(IDS, n_groups=4)
    assert soft_sizes(p).tolist() == torch.bincount(IDS, minlength=4).tolist()
    assert torch.equal(soft_inverse_frequency(p, by=by), inverse_frequency(IDS, by=by))
    assert torch.equal(soft_effective_number(p, beta=0.9, by=by), effective_number(IDS, beta=0.9, by=by))


def test_known_groups_stay_as_they_are_in_balanced_draws() -> None:
    p = one_hot(IDS, n_groups=4)
    assert torch.equal(balanced_posterior(p), p)


@given(st.floats(0, 1), st.integers(0, 9))
def test_weights_follow_the_formula_and_have_mean_one(power: float, seed: int) -> None:
    p = soft(seed=seed).numpy()
    sizes = [sum(row[g] for row in p) for g in range(3)]
    reference = np.array([sum(row[g] / sizes[g] ** power for g in range(3)) for row in p])
    weights = soft_inverse_frequency(torch.from_numpy(p), power=power)
    np.testing.assert_allclose(weights.numpy(), reference / reference.mean(), rtol=1e-6)


def test_every_group_has_the_same_expected_total_weight_and_power_zero_weighs_all_alike() -> None:
    """Of each group's own share of a row's weight, p_ig/n_g: the sum over rows is 1 for every group."""
    p = soft()
    assert (p / soft_sizes(p)).sum(0).tolist() == pytest.approx([1, 1, 1])
    assert soft_inverse_frequency(p, power=0.0).tolist() == pytest.approx([1.0] * len(p))


def test_an_empty_group_has_no_weight() -> None:
    p = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    assert soft_inverse_frequency(p).tolist() == [1, 1]
    assert torch.equal(balanced_posterior(p), p.double())


def test_the_balanced_posterior_makes_balanced_draws_estimate_the_risks_of_all_examples() -> None:
    p, losses = soft(n=200), torch.linspace(0, 1, 200, dtype=torch.float64)
    draws = p @ (1 / soft_sizes(p))  # how often balanced draws visit an example, on average
    r = balanced_posterior(p)
    estimated = (draws * losses) @ r / (draws @ r)
    torch.testing.assert_close(estimated, losses @ p / p.sum(0))


def test_an_illegal_beta_is_refused() -> None:
    with pytest.raises(ValueError, match="beta must lie in"):
        soft_effective_number(soft(), beta=1.0)
