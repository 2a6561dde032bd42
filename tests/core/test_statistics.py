"""Statistics against SciPy, brute force and known distributions."""

import itertools
import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from umix.core.statistics import (
    Interval,
    Spread,
    doubts,
    flip_p_value,
    mean_interval,
    paired,
    sign_p_value,
    wilson,
)

RATES = st.lists(st.sampled_from([k / 8 for k in range(-8, 9)]), min_size=1, max_size=7)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=9))
def test_the_spread_is_that_of_the_standard_library(values: list[float]) -> None:
    spread = Spread.of(values)
    assert spread.mean == pytest.approx(np.mean(values))
    assert spread.std == pytest.approx(statistics.stdev(values), abs=1e-12)


def test_a_single_seed_has_a_mean_and_no_deviation_and_none_has_neither() -> None:
    assert Spread.of([0.5]).mean == 0.5
    assert math.isnan(Spread.of([0.5]).std)
    assert math.isnan(Spread.of([]).mean)


@given(st.integers(1, 500).flatmap(lambda size: st.tuples(st.integers(0, size), st.just(size))), st.floats(0.5, 0.999))
def test_wilson_is_that_of_scipy(counts: tuple[int, int], level: float) -> None:
    hits, size = counts
    expected = stats.binomtest(hits, size).proportion_ci(confidence_level=level, method="wilson")
    found = wilson(hits, size, level=level)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_an_empty_group_has_no_interval() -> None:
    assert all(math.isnan(end) for end in (wilson(0, 0).low, wilson(0, 0).high))


def test_the_interval_of_a_mean_is_that_of_scipys_bootstrap() -> None:
    values = np.array([0.1, 0.3, 0.2, 0.5, 0.4, 0.9])
    expected = stats.bootstrap((values,), np.mean, n_resamples=50_000, method="percentile", rng=1).confidence_interval
    found = mean_interval(values, rng=rng(), draws=50_000)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.01)


def test_a_single_value_has_no_interval() -> None:
    assert math.isnan(mean_interval([0.3], rng=rng()).low)


@given(RATES)
def test_the_flip_test_counts_all_signs(differences: list[float]) -> None:
    signs = list(itertools.product((1, -1), repeat=len(differences)))
    sums = [abs(sum(s * d for s, d in zip(sign, differences, strict=True))) for sign in signs]  # eighths: exact
    assert flip_p_value(differences, rng=rng()) == sum(s >= sums[0] for s in sums) / len(signs)


def test_differences_that_cancel_are_as_near_to_zero_as_any() -> None:
    a, b = np.array([1, 10, 5, 1, 6]) / 274, np.array([1, 6, 9, 6, 1]) / 274
    assert 0 < abs((a - b).sum()) < 1e-15
    assert flip_p_value(a - b, rng=rng()) == 1


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=7), st.integers(1, 1000))
def test_the_flip_test_of_fractions_counts_as_whole_numbers_do(hits: list[int], size: int) -> None:
    assert flip_p_value(np.array(hits) / size, rng=rng()) == flip_p_value(hits, rng=rng())


def test_the_flip_test_is_that_of_scipy() -> None:
    differences = np.array([0.11, -0.02, 0.31, 0.07, 0.23, -0.13])
    expected = stats.permutation_test((differences,), np.mean, permutation_type="samples", n_resamples=np.inf).pvalue
    assert flip_p_value(differences, rng=rng()) == pytest.approx(expected)


def test_beyond_twelve_seeds_random_signs_come_close_to_all_of_them() -> None:
    differences = np.random.default_rng(3).normal(0.4, 1, size=13)
    signs = np.array(list(itertools.product((1, -1), repeat=13)))
    exact = (np.abs(signs @ differences) >= abs(differences.sum()) - 1e-12).mean()
    assert flip_p_value(differences, rng=rng(), draws=40_000) == pytest.approx(exact, abs=0.01)


def test_no_p_value_is_zero_even_where_no_draw_is_as_extreme() -> None:
    assert flip_p_value(np.ones(40), rng=rng(), draws=99) == 0.01


@given(RATES)
def test_the_sign_test_is_that_of_scipy(differences: list[float]) -> None:
    positive, negative = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    expected = stats.binomtest(positive, positive + negative).pvalue if positive + negative else 1.0
    assert sign_p_value(differences) == pytest.approx(expected)


def test_tests_of_no_difference_at_all() -> None:
    assert math.isnan(flip_p_value([], rng=rng()))
    assert math.isnan(sign_p_value([]))
    assert (flip_p_value([0.0, 0.0], rng=rng()), sign_p_value([0.0, 0.0])) == (1.0, 1.0)


def test_pairs_are_subtracted_and_those_without_a_rate_left_out() -> None:
    found = paired([0.5, 0.75, math.nan], [0.25, 0.25, 0.5], rng=rng())
    assert (found.seeds, found.spread.mean, found.p_flip, found.p_sign) == (2, 0.375, 0.5, 0.5)
    assert found.interval == Interval(0.25, 0.5)


def test_swapping_a_pair_turns_the_difference_and_keeps_the_p_values() -> None:
    a, b = [0.9, 0.8, 0.7, 0.85], [0.5, 0.9, 0.6, 0.6]
    there, back = paired(a, b, rng=rng()), paired(b, a, rng=rng())
    assert there.spread.mean == -back.spread.mean
    assert (there.p_flip, there.p_sign) == (back.p_flip, back.p_sign)


def test_seeds_that_are_the_same_fit_are_doubted() -> None:
    assert doubts(seeds=5, fits=1, worst_size=None) == ["all 5 seeds are the same fit, which counts once"]
    assert doubts(seeds=5, fits=3, worst_size=None) == ["5 seeds are 3 different fits; copies count once"]
    assert doubts(seeds=5, fits=5, worst_size=None) == []
    assert doubts(seeds=2, fits=2, worst_size=None) == ["fewer than 3 seeds"]


@pytest.mark.parametrize(("seeds", "size", "n"), [(3, 30, 0), (2, 30, 1), (3, 29, 1), (1, 0, 2), (5, None, 0)], ids=str)
def test_few_seeds_and_few_examples_are_doubted(seeds: int, size: int | None, n: int) -> None:
    assert len(doubts(seeds=seeds, worst_size=size)) == n
