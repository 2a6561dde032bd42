"""Drift: the total variation distance and scipy's chi-squared test of two rows of counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from umix.core.drift import drift

COUNTS = st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500)), min_size=1, max_size=12).filter(
    lambda pairs: all(sum(column) for column in zip(*pairs, strict=True))
)


@given(COUNTS)
def test_moved_is_the_share_of_rows_that_would_have_to_change(pairs: list[tuple[int, int]]) -> None:
    before, after = np.array(pairs, dtype=float).T
    surplus = np.clip(after / after.sum() - before / before.sum(), 0, None).sum()  # rows where there are now too many
    found = drift(*np.array(pairs).T)
    assert found.moved == pytest.approx(surplus, abs=1e-9)
    assert 0 <= found.moved <= 1


@given(COUNTS)
def test_the_p_value_is_that_of_the_chi_squared_test_of_pooled_bins_by_hand(pairs: list[tuple[int, int]]) -> None:
    rising = sorted(pairs, key=sum)
    fewer = min(map(sum, zip(*pairs, strict=True))) / sum(map(sum, pairs))
    while len(rising) > 1 and sum(rising[0]) * fewer < 5:
        (a, b), (c, d), *rest = rising
        rising = [(a + c, b + d), *rest]
    counts = np.array(rising, dtype=float).T
    expected = counts.sum(1, keepdims=True) * counts.sum(0) / counts.sum()
    statistic, free = ((counts - expected) ** 2 / expected).sum(), counts.shape[1] - 1
    by_hand = chi2.sf(statistic, free) if free else 1.0
    assert drift(*np.array(pairs).T).p_value == pytest.approx(by_hand, abs=1e-9)


@pytest.mark.parametrize("n", [1, 5, 20, 100])
def test_small_samples_of_the_same_shares_are_hardly_ever_large(n: int) -> None:
    rng, shares = np.random.default_rng(0), np.array([0.5, 0.3, 0.1, 0.05, 0.03, 0.01, 0.005, 0.005])
    reference = rng.multinomial(3000, shares)
    large = sum(drift(reference, rng.multinomial(n, shares)).is_large() for _ in range(300))
    assert large <= 9  # 3 are expected of 300; more than 9 have a chance of 1 in 1,000


def test_the_bin_is_the_one_whose_share_changed_most() -> None:
    found = drift([50, 40, 10], [20, 55, 25])
    assert (found.bin, found.before, found.after) == (0, 0.5, 0.2)


@pytest.mark.parametrize(
    ("sample", "large"), [([600, 400], True), ([12, 8], False), ([540, 460], False)], ids=["both", "few rows", "small"]
)
def test_large_is_a_tenth_of_the_rows_beyond_chance(sample: list[int], large: bool) -> None:
    assert drift([5000, 5000], sample).is_large(20) == large
