"""Weights by frequency against plain NumPy."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from umix.core.weights import effective_number, inverse_frequency, inverse_frequency_within

IDS = npst.arrays(np.int64, st.integers(1, 40), elements=st.integers(0, 6))
BETA = st.sampled_from([0.0, 0.5, 0.9, 0.999, 0.9999])


def sizes_of(ids: np.ndarray) -> np.ndarray:
    return np.array([np.count_nonzero(ids == g) for g in ids], dtype=np.float64)


@given(IDS)
def test_inverse_frequency_is_one_over_the_size_scaled_to_mean_one(ids: np.ndarray) -> None:
    expected = 1 / sizes_of(ids)
    np.testing.assert_allclose(inverse_frequency(torch.from_numpy(ids)), expected / expected.mean(), rtol=1e-6)


@given(IDS)
def test_every_group_has_the_same_total_weight_under_inverse_frequency(ids: np.ndarray) -> None:
    weights = inverse_frequency(torch.from_numpy(ids)).double().numpy()
    totals = [weights[ids == g].sum() for g in np.unique(ids)]
    np.testing.assert_allclose(totals, len(ids) / len(totals), rtol=1e-6)


@given(IDS, BETA)
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


@given(IDS, BETA, st.sampled_from([0.0, 0.3, 0.5, 1.0]))
def test_powers_are_those_of_numpy(ids: np.ndarray, beta: float, power: float) -> None:
    sizes = sizes_of(ids)
    effective = np.array([sum(beta**i for i in range(int(size))) for size in sizes])
    for found, expected in (
        (inverse_frequency(torch.from_numpy(ids), power=power), sizes**-power),
        (effective_number(torch.from_numpy(ids), beta=beta, power=power), effective**-power),
    ):
        np.testing.assert_allclose(found, expected / expected.mean(), rtol=1e-6)


@given(IDS, st.sampled_from([0.0, 0.5, 1.0, 2.0]))
def test_weights_within_classes_are_powers_of_sizes_with_the_same_total_in_every_class(
    ids: np.ndarray, power: float
) -> None:
    y = ids % 3  # every id belongs to one class
    expected = sizes_of(ids) ** -power
    expected /= np.array([expected[y == c].sum() for c in y])
    found = inverse_frequency_within(torch.from_numpy(ids), torch.from_numpy(y), power=torch.full((3,), power))
    np.testing.assert_allclose(found, expected / expected.mean(), rtol=1e-6)


@given(IDS)
def test_within_classes_power_zero_or_one_cluster_each_balances_classes(ids: np.ndarray) -> None:
    y = ids % 3
    balanced = inverse_frequency(torch.from_numpy(y))
    none = inverse_frequency_within(torch.from_numpy(ids), torch.from_numpy(y), power=torch.zeros(3))
    one = inverse_frequency_within(torch.from_numpy(y), torch.from_numpy(y), power=torch.full((3,), 2.0))
    np.testing.assert_allclose(none, balanced, rtol=1e-6)
    np.testing.assert_allclose(one, balanced, rtol=1e-6)
