"""Partners against plain loops over all candidates."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from umix.core.pairing import partners, partners_across, partners_within


def test_partners_are_a_permutation():
    assert sorted(partners(20, rng=np.random.default_rng(0)).tolist()) == list(range(20))


@given(st.lists(st.integers(0, 4), max_size=40), st.integers(0, 2**31))
def test_within_partners_share_the_key_and_are_never_oneself_where_another_exists(keys, seed):
    key = torch.tensor(keys, dtype=torch.int64)
    pair = partners_within(key, rng=np.random.default_rng(seed))
    assert sorted(pair.tolist()) == list(range(len(keys)))
    assert torch.equal(key[pair], key)
    alone = torch.tensor([keys.count(k) == 1 for k in keys], dtype=torch.bool)
    assert torch.equal(pair == torch.arange(len(keys)), alone)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=40), st.integers(0, 2**31))
def test_across_partners_share_one_and_differ_in_the_other(cells, seed):
    same = torch.tensor([a for a, _ in cells], dtype=torch.int64)
    other = torch.tensor([b for _, b in cells], dtype=torch.int64)
    pair = partners_across(same, other, n_same=3, n_other=4, rng=np.random.default_rng(seed))
    for i, j in enumerate(pair.tolist()):
        exists = any(a == cells[i][0] and b != cells[i][1] for a, b in cells)
        if exists:
            assert cells[j][0] == cells[i][0]
            assert cells[j][1] != cells[i][1]
        else:
            assert j == i


@pytest.mark.parametrize("kind", ["within", "across"])
def test_every_legal_partner_is_equally_likely(kind):
    key = torch.tensor([0, 0, 0, 0, 1, 1])
    other = torch.tensor([0, 1, 1, 2, 0, 1])
    rng = np.random.default_rng(0)
    draw = (
        (lambda: partners_within(key, rng=rng))
        if kind == "within"
        else (lambda: partners_across(key, other, n_same=2, n_other=3, rng=rng))
    )
    seen = Counter(int(draw()[0]) for _ in range(3000))
    assert set(seen) == {1, 2, 3}
    assert all(abs(count - 1000) < 120 for count in seen.values())


def test_the_same_stream_gives_the_same_partners():
    key = torch.arange(30) % 3
    first, second = (partners_within(key, rng=np.random.default_rng(5)) for _ in range(2))
    assert torch.equal(first, second)
