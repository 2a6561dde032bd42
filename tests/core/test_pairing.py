"""Partners against plain loops over all candidates."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from umix.core.pairing import (
    partners,
    partners_across,
    partners_across_halves,
    partners_from_groups,
    partners_in_next,
    partners_within,
)


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


CELLS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=40)


@given(CELLS, st.integers(0, 2**31))
def test_partners_from_groups_share_one_and_differ_in_the_other(cells, seed):
    same = np.array([a for a, _ in cells], dtype=np.int64)
    other = np.array([b for _, b in cells], dtype=np.int64)
    rng = np.random.default_rng(seed)
    rows = rng.integers(len(cells), size=15)
    found = partners_from_groups(rows, same, other, rng=rng)
    assert len(found) == len(rows)
    for row, partner in zip(rows.tolist(), found.tolist(), strict=True):
        if any(a == cells[row][0] and b != cells[row][1] for a, b in cells):
            assert cells[partner][0] == cells[row][0]
            assert cells[partner][1] != cells[row][1]
        else:
            assert partner == row


def test_every_group_that_fits_is_equally_likely_and_every_example_in_it():
    same, other = np.array([0, 0, 0, 0, 1, 1]), np.array([0, 1, 1, 2, 0, 1])
    found = partners_from_groups(np.zeros(6000, dtype=np.int64), same, other, rng=np.random.default_rng(0))
    seen = Counter(found.tolist())
    assert set(seen) == {1, 2, 3}
    assert abs(seen[3] - 3000) < 200
    assert abs(seen[1] - 1500) < 200


@pytest.mark.parametrize("n", [0, 1, 2, 7, 8])
def test_partners_across_halves_are_partners_of_each_other(n):
    pair = partners_across_halves(n)
    assert pair[pair].tolist() == list(range(n))
    assert (pair == np.arange(n)).sum() == n % 2


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), st.permutations(range(5)))
def test_every_example_meets_one_of_the_next_domain_that_the_batch_has(domain, cycle):
    domain, cycle = np.array(domain), np.array(cycle)
    pair = partners_in_next(domain, cycle)
    present = [d for d in cycle if d in domain]
    following = {d: present[(i + 1) % len(present)] for i, d in enumerate(present)}
    assert [following[d] for d in domain] == domain[pair].tolist()


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), st.permutations(range(5)))
def test_the_kth_example_meets_the_kth_modulo_the_size_of_the_next_domain(domain, cycle):
    domain = np.array(domain)
    pair = partners_in_next(domain, np.array(cycle))
    for i, partner in enumerate(pair):
        place = int((domain[:i] == domain[i]).sum())
        others = np.flatnonzero(domain == domain[partner])
        assert partner == others[place % len(others)]


@pytest.mark.parametrize("n", [1, 4])
def test_the_examples_of_an_only_domain_are_their_own_partners(n):
    assert partners_in_next(np.full(n, 2), np.array([2, 0, 1])).tolist() == list(range(n))
