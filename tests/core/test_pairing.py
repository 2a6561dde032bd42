"""Partners against plain loops over all candidates."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from umix.core.pairing import partners, partners_across, partners_within


def test_partners_are_a_permutation():
    assert sorted(partners(20, rng=np.random.default_rng(0)).tolist()) == list(range(20))


@given(st.lists(st.integers(0, 4), max_size=40), st.integers(0, 2**31))
def test_within_partners_share_the_key_and_are_never_oneself_where_another_exists(keys, seed):
    key = np.array(keys, dtype=np.int64)
    pair = partners_within(key, rng=np.random.default_rng(seed))
    assert sorted(pair.tolist()) == list(range(len(keys)))
    assert (key[pair] == key).all()
    alone = [keys.count(k) == 1 for k in keys]
    assert (pair == np.arange(len(keys))).tolist() == alone


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=40), st.integers(0, 2**31))
def test_across_partners_share_one_and_differ_in_the_other(cells, seed):
    same = np.array([a for a, _ in cells], dtype=np.int64)
    other = np.array([b for _, b in cells], dtype=np.int64)
    pair = partners_across(same, other, rng=np.random.default_rng(seed))
    for i, j in enumerate(pair.tolist()):
        exists = any(a == cells[i][0] and b != cells[i][1] for a, b in cells)
        if exists:
            assert cells[j][0] == cells[i][0]
            assert cells[j][1] != cells[i][1]
        else:
            assert j == i


@pytest.mark.parametrize("kind", ["within", "across"])
def test_every_legal_partner_is_equally_likely(kind):
    key = np.array([0, 0, 0, 0, 1, 1])
    other = np.array([0, 1, 1, 2, 0, 1])
    rng = np.random.default_rng(0)
    draw = (
        (lambda: partners_within(key, rng=rng)) if kind == "within" else (lambda: partners_across(key, other, rng=rng))
    )
    seen = Counter(int(draw()[0]) for _ in range(3000))
    assert set(seen) == {1, 2, 3}
    assert all(abs(count - 1000) < 120 for count in seen.values())


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=20), st.integers(0, 2**31))
def test_the_partners_do_not_depend_on_values_that_might_occur(cells, seed):
    same, other = (np.array([cell[i] for cell in cells], dtype=np.int64) for i in (0, 1))
    known, wider = (
        partners_across(same, other, rng=np.random.default_rng(seed), shape=shape) for shape in (None, (5, 7))
    )
    assert known.tolist() == wider.tolist()


def test_the_same_stream_gives_the_same_partners():
    key = np.arange(30) % 3
    first, second = (partners_within(key, rng=np.random.default_rng(5)) for _ in range(2))
    assert (first == second).all()
