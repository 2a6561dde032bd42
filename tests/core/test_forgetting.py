"""Forgetting events against a plain loop over examples."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from umix.core.forgetting import forgetting_events


@given(st.integers(0, 6), st.integers(0, 5), st.integers(0, 2**32 - 1))
def test_events_are_visits_wrong_after_a_visit_that_was_right(epochs: int, n: int, seed: int) -> None:
    correct, visited = np.random.default_rng(seed).random((2, epochs, n)) < 0.5
    expected = []
    for example in range(n):
        seen = [bool(correct[epoch, example]) for epoch in range(epochs) if visited[epoch, example]]
        expected.append(sum(before and not after for before, after in pairwise(seen)))
    assert forgetting_events(zip(correct, visited, strict=True), n=n).tolist() == expected
