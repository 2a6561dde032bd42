"""Fifths of the examples in order of uncertainty; what a selection makes of counts is in test_selection."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from umix.core.epoch_counts import quintiles


@given(st.lists(st.integers(0, 4), min_size=1, max_size=23))
def test_quintiles_hold_a_fifth_each_and_every_example_once(levels):
    shares = quintiles(np.array(levels) / 4)
    np.testing.assert_allclose(shares.sum(axis=0), len(levels) / 5)
    np.testing.assert_allclose(shares.sum(axis=1), 1)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=7))
def test_quintiles_are_the_mean_over_the_orders_of_equally_uncertain_examples(levels):
    """Every example cut into five pieces: a fifth of the sorted pieces is a quintile, averaged over permutations of ties."""
    n = len(levels)
    expected = np.zeros((n, 5))
    for k in range(n):
        ties = [j for j in range(n) if levels[j] == levels[k]]
        first = sum(level < levels[k] for level in levels)
        for place in range(first, first + len(ties)):  # any of the tied may stand here, all alike
            for piece in range(5 * place, 5 * place + 5):
                expected[k, piece // n] += 1 / 5 / len(ties)
    np.testing.assert_allclose(quintiles(np.array(levels)), expected, atol=1e-12)


def test_permuting_examples_permutes_their_quintiles():
    u, order = np.array([0.1, 0.5, 0.5, 0.0, 0.9, 0.5, 0.2]), np.array([3, 1, 6, 0, 5, 2, 4])
    np.testing.assert_array_equal(quintiles(u[order]), quintiles(u)[order])
