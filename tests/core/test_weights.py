"""Uncertainty against a plain loop; weights against their formula."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from torch import Tensor

from umix.core.weights import (
    balanced_posterior,
    class_means,
    effective_number,
    effective_sample_size,
    importance_weights,
    inverse_frequency,
    inverse_frequency_within,
    normalized,
    one_hot,
    relative_difficulty,
    soft_effective_number,
    soft_inverse_frequency,
    soft_sizes,
    uncertainty,
)


@st.composite
def trajectories(draw):
    n, epochs = draw(st.integers(0, 6)), draw(st.integers(1, 9))
    start = draw(st.integers(0, epochs - 1))
    length = draw(st.integers(1, epochs - start))
    return draw(npst.arrays(np.bool_, (n, epochs))), start, length


POSITIVE = npst.arrays(np.float64, st.integers(1, 9), elements=st.floats(1e-3, 1e3))


@given(trajectories())
@settings(deadline=None, max_examples=60)
def test_uncertainty_is_the_share_of_mistakes_in_the_window(drawn):
    correct, start, length = drawn
    expected = []
    for row in correct:
        mistakes = 0
        for epoch in range(start, start + length):
            mistakes += 0 if row[epoch] else 1
        expected.append(mistakes / length)
    u = uncertainty(torch.from_numpy(correct), start=start, length=length)
    assert u.tolist() == pytest.approx(expected, abs=1e-6)
    assert u.shape == (len(correct),)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float32, torch.float64], ids=str)
def test_uncertainty_is_the_same_from_any_type_of_zeros_and_ones(dtype):
    correct = torch.tensor([[1, 0, 1, 0], [1, 1, 1, 1]]).to(dtype)
    assert uncertainty(correct, start=1, length=2).tolist() == [0.5, 0.0]


@pytest.mark.parametrize("length", [1, 3, 7, 49, 100])
def test_always_right_is_exactly_zero_and_always_wrong_exactly_one(length):
    correct = torch.tensor([[1.0], [0.0]]).repeat(1, length)
    assert uncertainty(correct, start=0, length=length).tolist() == [0.0, 1.0]


def test_a_missing_prediction_outside_the_window_does_not_matter():
    correct = torch.tensor([[math.nan, 1.0, 0.0, math.nan]])
    assert uncertainty(correct, start=1, length=2).tolist() == [0.5]


def test_a_missing_prediction_in_the_window_is_an_error_not_a_mistake():
    correct = torch.tensor([[1.0, math.nan], [1.0, 1.0]])
    with pytest.raises(ValueError, match=r"epochs 0\.\.1, got 2 epochs with 1 missing predictions in the window"):
        uncertainty(correct, start=0, length=2)


@pytest.mark.parametrize(("start", "length"), [(0, 4), (2, 2), (3, 1), (9, 1)])
def test_a_window_beyond_the_recorded_epochs_is_an_error(start, length):
    with pytest.raises(ValueError, match=rf"epochs {start}\.\.{start + length - 1}, got 3 epochs"):
        uncertainty(torch.ones(2, 3), start=start, length=length)


@pytest.mark.parametrize(("start", "length"), [(-1, 1), (-3, 3), (0, 0), (1, -1)])
def test_a_window_that_is_none_is_an_error(start, length):
    with pytest.raises(ValueError, match=f"got start={start} and length={length}"):
        uncertainty(torch.ones(2, 3), start=start, length=length)


@given(npst.arrays(np.float64, st.integers(0, 9), elements=st.floats(0, 1)), st.floats(0, 1e3), st.floats(0, 10))
@settings(deadline=None, max_examples=50)
def test_importance_weights_are_eta_u_plus_c(u, eta, c):
    w = importance_weights(torch.from_numpy(u), eta=eta, c=c)
    np.testing.assert_allclose(w.numpy(), eta * u + c, rtol=1e-12)


def test_an_unknown_uncertainty_gets_no_weight_but_an_error():
    with pytest.raises(ValueError, match="u must hold no NaN, got 2 of 3"):
        importance_weights(torch.tensor([0.5, math.nan, math.nan]), eta=1.0)


@given(POSITIVE)
@settings(deadline=None, max_examples=50)
def test_normalized_weights_have_mean_one_and_keep_their_ratios(w):
    scaled = normalized(torch.from_numpy(w)).numpy()
    assert scaled.mean() == pytest.approx(1, rel=1e-9)
    np.testing.assert_allclose(scaled * w[0], w * scaled[0], rtol=1e-9)


def test_no_weights_normalize_to_none():
    assert normalized(torch.ones(0)).shape == (0,)


@pytest.mark.parametrize("w", [[0.0, 0.0], [-1.0, 0.5], [math.nan, 1.0]], ids=["zero", "negative", "nan"])
def test_weights_without_a_positive_sum_cannot_be_normalized(w):
    with pytest.raises(ValueError, match="must have a positive, finite sum"):
        normalized(torch.tensor(w))


@given(POSITIVE)
@settings(deadline=None, max_examples=50)
def test_effective_sample_size_lies_between_one_and_n_and_follows_its_formula(w):
    size = effective_sample_size(torch.from_numpy(w))
    assert 1 - 1e-9 <= size <= len(w) + 1e-9
    assert size == pytest.approx(math.fsum(w) ** 2 / math.fsum(value * value for value in w))


@pytest.mark.parametrize("n", [1, 7])
def test_weights_of_zero_are_worth_no_example(n):
    assert effective_sample_size(torch.zeros(n)) == 0.0


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_weights_that_are_not_finite_have_no_effective_sample_size(bad):
    assert math.isnan(effective_sample_size(torch.tensor([1.0, bad])))


@pytest.mark.parametrize("w", [[math.inf, 1.0], [3e38, 3e38]], ids=["inf", "overflow"])
def test_weights_without_a_finite_sum_cannot_be_normalized(w):
    with pytest.raises(ValueError, match="must have a positive, finite sum"):
        normalized(torch.tensor(w))


def test_weights_that_no_copy_has_cannot_be_normalized():
    with pytest.raises(ValueError, match=r"must have a positive, finite sum to be normalised, got 0\.0"):
        normalized(torch.tensor([1.0, 0.0]), sample_weight=torch.tensor([0.0, 1.0]))


def test_a_difficulty_that_is_not_a_number_is_never_hidden():
    nan, losses = torch.tensor([math.nan]), torch.tensor([1.0])
    assert relative_difficulty(nan, losses).isnan().all()
    assert relative_difficulty(losses, nan).isnan().all()


def test_class_means_are_those_of_numpy_and_keep_the_overall_mean():
    rng = np.random.default_rng(3)
    u, y = rng.random(100).astype(np.float32), rng.integers(4, size=100)
    pooled = class_means(torch.from_numpy(u), torch.from_numpy(y)).numpy()
    np.testing.assert_allclose(pooled, [u[y == c].mean() for c in y], rtol=1e-6)
    np.testing.assert_allclose(pooled.mean(), u.mean(), rtol=1e-6)


IDS = torch.tensor([0, 0, 3, 1, 0, 3, 0, 1, 1, 1, 1])  # group 2 is empty


WEIGHT = torch.linspace(0.5, 2, len(IDS))


def soft(n: int = 40, groups: int = 3, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).dirichlet([0.3] * groups, n))


@pytest.mark.parametrize("by", [None, WEIGHT], ids=["", "weighted"])
def test_known_groups_have_exactly_the_weights_of_their_inverse_frequency(by: Tensor | None) -> None:
    p = one_hot(IDS, n_groups=4)
    assert soft_sizes(p).tolist() == torch.bincount(IDS, minlength=4).tolist()
    assert torch.equal(soft_inverse_frequency(p, sample_weight=by), inverse_frequency(IDS, sample_weight=by))
    assert torch.equal(
        soft_effective_number(p, beta=0.9, sample_weight=by), effective_number(IDS, beta=0.9, sample_weight=by)
    )


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


GROUP_IDS = npst.arrays(np.int64, st.integers(1, 40), elements=st.integers(0, 6))


BETA = st.sampled_from([0.0, 0.5, 0.9, 0.999, 0.9999])


def sizes_of(ids: np.ndarray) -> np.ndarray:
    return np.array([np.count_nonzero(ids == g) for g in ids], dtype=np.float64)


@given(GROUP_IDS)
def test_inverse_frequency_is_one_over_the_size_scaled_to_mean_one(ids: np.ndarray) -> None:
    expected = 1 / sizes_of(ids)
    np.testing.assert_allclose(inverse_frequency(torch.from_numpy(ids)), expected / expected.mean(), rtol=1e-6)


@given(GROUP_IDS)
def test_every_group_has_the_same_total_weight_under_inverse_frequency(ids: np.ndarray) -> None:
    weights = inverse_frequency(torch.from_numpy(ids)).double().numpy()
    totals = [weights[ids == g].sum() for g in np.unique(ids)]
    np.testing.assert_allclose(totals, len(ids) / len(totals), rtol=1e-6)


@given(GROUP_IDS, BETA)
def test_effective_number_is_the_inverse_of_a_geometric_sum_scaled_to_mean_one(ids: np.ndarray, beta: float) -> None:
    expected = np.array([1 / sum(beta**i for i in range(int(size))) for size in sizes_of(ids)])
    np.testing.assert_allclose(
        effective_number(torch.from_numpy(ids), beta=beta), expected / expected.mean(), rtol=1e-6
    )


def test_beta_near_one_is_inverse_frequency() -> None:
    ids = torch.tensor([0] * 50 + [1] * 5 + [3])
    torch.testing.assert_close(effective_number(ids, beta=1 - 1e-9), inverse_frequency(ids))


@pytest.mark.parametrize("beta", [-0.1, 1.0, float("nan")])
def test_beta_outside_of_its_range_is_an_error(beta: float) -> None:
    with pytest.raises(ValueError, match=r"beta must lie in \[0, 1\)"):
        effective_number(torch.tensor([0, 1]), beta=beta)


@given(GROUP_IDS, BETA, st.sampled_from([0.0, 0.3, 0.5, 1.0]))
def test_powers_are_those_of_numpy(ids: np.ndarray, beta: float, power: float) -> None:
    sizes = sizes_of(ids)
    effective = np.array([sum(beta**i for i in range(int(size))) for size in sizes])
    for found, expected in (
        (inverse_frequency(torch.from_numpy(ids), power=power), sizes**-power),
        (effective_number(torch.from_numpy(ids), beta=beta, power=power), effective**-power),
    ):
        np.testing.assert_allclose(found, expected / expected.mean(), rtol=1e-6)


@given(GROUP_IDS, st.sampled_from([0.0, 0.5, 1.0, 2.0]))
def test_weights_within_classes_are_powers_of_sizes_with_the_same_total_in_every_class(
    ids: np.ndarray, power: float
) -> None:
    y = ids % 3  # every id belongs to one class
    expected = sizes_of(ids) ** -power
    expected /= np.array([expected[y == c].sum() for c in y])
    found = inverse_frequency_within(torch.from_numpy(ids), torch.from_numpy(y), power=torch.full((3,), power))
    np.testing.assert_allclose(found, expected / expected.mean(), rtol=1e-6)


@given(GROUP_IDS)
def test_within_classes_power_zero_or_one_cluster_each_balances_classes(ids: np.ndarray) -> None:
    y = ids % 3
    balanced = inverse_frequency(torch.from_numpy(y))
    none = inverse_frequency_within(torch.from_numpy(ids), torch.from_numpy(y), power=torch.zeros(3))
    one = inverse_frequency_within(torch.from_numpy(y), torch.from_numpy(y), power=torch.full((3,), 2.0))
    np.testing.assert_allclose(none, balanced, rtol=1e-6)
    np.testing.assert_allclose(one, balanced, rtol=1e-6)
