"""Rows drawn by group."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from umix.core.subsets import balanced_first, balanced_subset, grown_size, stratified_split

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


@given(GROUPS, st.none() | st.integers(1, 12), SEED)
def test_the_first_rows_are_balanced_and_all_others_follow(group: np.ndarray, most: int | None, seed: int) -> None:
    order, first = balanced_first(group, most=most, rng=np.random.default_rng(seed))
    assert sorted(order) == list(range(len(group)))
    sizes = {g: np.count_nonzero(group == g) for g in np.unique(group)}
    cap = min(sizes.values()) if most is None else most
    expected = {g: min(size, cap) for g, size in sizes.items()}
    assert {g: np.count_nonzero(group[order[:first]] == g) for g in sizes} == expected


def test_of_no_rows_none_are_first() -> None:
    order, first = balanced_first(np.zeros(0, dtype=np.int64), rng=np.random.default_rng(0))
    assert (len(order), first) == (0, 0)


@given(st.integers(1, 40), st.integers(0, 60), st.floats(0, 1), st.floats(0, 1), st.integers(1, 12))
def test_a_growing_subset_never_shrinks_and_ends_with_its_share(
    first: int, rest: int, warm_up: float, added: float, expansions: int
) -> None:
    def size(progress: float) -> int:
        return grown_size(
            progress, first=first, total=first + rest, warm_up=warm_up, added=added, expansions=expansions
        )

    sizes = [size(t / 50) for t in range(51)]
    assert sizes == sorted(sizes)
    assert all(n == first for t, n in enumerate(sizes) if t / 50 < warm_up)
    assert size(1.0) == (first if warm_up == 1 else first + round(added * rest))
    if expansions == 1:
        assert set(sizes) <= {first, first + round(added * rest)}
