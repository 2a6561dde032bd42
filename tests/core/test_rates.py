"""Rates are made of counts; an empty group has none and is never counted as 0."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from umix.core.rates import adjusted, average, frontier, group_mean, per_group, worst


@st.composite
def tables(draw):
    """Hits and sizes of disjoint groups, some of them empty."""
    sizes = draw(st.lists(st.integers(0, 30), min_size=1, max_size=6))
    return [draw(st.integers(0, size)) for size in sizes], sizes


def _loop(hits, sizes):
    return [hit / size for hit, size in zip(hits, sizes, strict=True) if size]


def _equal(first, second):
    return first == pytest.approx(second, nan_ok=True)


EVERY_RATE = pytest.mark.parametrize("rate", [average, worst, group_mean], ids=lambda rate: rate.__name__)


def test_the_rates_of_a_table_by_hand():
    hits, sizes = [9, 2, 0, 3], [10, 4, 0, 6]
    assert per_group(hits, sizes).tolist() == pytest.approx([0.9, 0.5, math.nan, 0.5], nan_ok=True)
    assert average(hits, sizes) == 0.7
    assert worst(hits, sizes) == 0.5
    assert group_mean(hits, sizes) == pytest.approx(1.9 / 3)
    assert adjusted(hits, sizes, [60, 20, 10, 20]) == pytest.approx((60 * 0.9 + 20 * 0.5 + 20 * 0.5) / 100)


@given(tables())
@settings(deadline=None, max_examples=60)
def test_rates_are_those_of_a_loop_over_groups_that_have_examples(table):
    hits, sizes = table
    assume(sum(sizes))
    rates = _loop(hits, sizes)
    assert _equal(average(hits, sizes), sum(hits) / sum(sizes))
    assert _equal(worst(hits, sizes), min(rates))
    assert _equal(group_mean(hits, sizes), sum(rates) / len(rates))


@given(tables())
@settings(deadline=None, max_examples=60)
def test_worst_is_at_most_average_and_group_mean(table):
    assume(sum(table[1]))
    assert worst(*table) <= average(*table) + 1e-12
    assert worst(*table) <= group_mean(*table) + 1e-12
    assert max(_loop(*table)) >= max(average(*table), group_mean(*table)) - 1e-12


@EVERY_RATE
@given(table=tables())
@settings(deadline=None, max_examples=30)
def test_an_empty_group_more_changes_nothing(rate, table):
    hits, sizes = table
    assert _equal(rate([*hits, 0], [*sizes, 0]), rate(hits, sizes))


@EVERY_RATE
@pytest.mark.parametrize("sizes", [[0, 0], []], ids=["empty groups", "no groups"])
def test_without_any_example_there_is_no_rate(rate, sizes):
    answer = rate([0] * len(sizes), sizes)
    assert math.isnan(answer)
    assert type(answer) is float


@pytest.mark.parametrize(
    ("hits", "sizes", "train"),
    [([0, 0], [0, 0], [1, 1]), ([1, 0], [1, 0], [0, 1]), ([], [], [])],
    ids=["empty groups", "known groups absent in training", "no groups"],
)
def test_adjusted_without_anything_to_weight_is_nan(hits, sizes, train):
    assert math.isnan(adjusted(hits, sizes, train))


@given(tables())
@settings(deadline=None, max_examples=40)
def test_adjusted_by_the_split_itself_is_the_average(table):
    assert _equal(adjusted(*table, table[1]), average(*table))


@given(tables(), st.integers(1, 9))
@settings(deadline=None, max_examples=40)
def test_adjusted_by_equal_training_groups_is_the_group_mean(table, size):
    assert _equal(adjusted(*table, [size] * len(table[1])), group_mean(*table))


def test_per_group_takes_hits_of_many_epochs():
    rates = per_group([[1, 0, 0], [2, 0, 3]], [2, 0, 4])
    np.testing.assert_array_equal(rates, [[0.5, np.nan, 0.0], [1.0, np.nan, 0.75]])


POINTS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12)


@given(POINTS)
def test_the_frontier_has_every_point_that_no_other_beats(points):
    worst, average = np.array([p[0] for p in points], float), np.array([p[1] for p in points], float)
    found = frontier(worst, average)
    for index, (low, mean) in enumerate(points):
        beaten = any((a >= low and b > mean) or (a > low and b >= mean) for a, b in points)
        first = points.index((low, mean)) == index
        assert (index in found) == (not beaten and first)
    assert (np.diff(average[found]) > 0).all()
    assert (np.diff(worst[found]) < 0).all()


def test_points_that_are_not_known_are_left_out():
    assert frontier([np.nan, 0.5], [0.9, 0.4]).tolist() == [1]
    assert frontier([], []).tolist() == []
