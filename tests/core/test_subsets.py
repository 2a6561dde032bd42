"""Rows drawn by group."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from umix.core.subsets import balanced_subset, stratified_split

GROUPS = npst.arrays(np.int64, st.integers(1, 40), elements=st.integers(0, 5))
SEED = st.integers(0, 1000)


@given(GROUPS, st.floats(0.01, 0.99), SEED)
def test_a_stratified_split_holds_every_row_once(group: np.ndarray, share: float, seed: int) -> None:
    first, rest = stratified_split(group, share=share, rng=np.random.default_rng(seed))
    assert sorted([*first, *rest]) == list(range(len(group)))


@given(GROUPS, st.floats(0.01, 0.99), SEED)
def test_a_stratified_split_takes_its_share_of_every_group(group: np.ndarray, share: float, seed: int) -> None:
    first, rest = stratified_split(group, share=share, rng=np.random.default_rng(seed))
    for g in np.unique(group):
        size, taken = np.count_nonzero(group == g), np.count_nonzero(group[first] == g)
        assert taken == 1 or taken == size - 1 or abs(taken - share * size) <= 0.5
        assert taken >= 1
        assert size == 1 or np.count_nonzero(group[rest] == g) >= 1


@given(GROUPS, SEED)
def test_a_balanced_subset_has_as_many_rows_of_every_group_as_the_smallest(group: np.ndarray, seed: int) -> None:
    rows = balanced_subset(group, rng=np.random.default_rng(seed))
    assert len(set(rows)) == len(rows)
    smallest = min(np.count_nonzero(group == g) for g in np.unique(group))
    assert {g: np.count_nonzero(group[rows] == g) for g in np.unique(group)} == dict.fromkeys(
        np.unique(group), smallest
    )


def test_balanced_subsets_differ_from_draw_to_draw() -> None:
    group, rng = np.repeat([0, 1], [3, 50]), np.random.default_rng(0)
    draws = [set(balanced_subset(group, rng=rng)) for _ in range(5)]
    assert all(draw >= {0, 1, 2} for draw in draws)
    assert len({frozenset(draw) for draw in draws}) == 5
